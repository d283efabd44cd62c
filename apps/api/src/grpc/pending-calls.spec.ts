import { EventEmitter } from 'node:events';
import { constants, type ServerHttp2Stream } from 'node:http2';
import { PendingCalls } from './pending-calls.js';

class FakeStream extends EventEmitter {
  code: number | undefined;

  close(code: number): void {
    this.code = code;
    this.emit('close');
  }
}

describe('calls whose messages have not arrived', () => {
  let calls: PendingCalls;
  let refused: unknown[];
  beforeEach(() => {
    refused = [];
    calls = new PendingCalls((stream) => refused.push(stream));
  });

  const open = (address: unknown): FakeStream => {
    const stream = new FakeStream();
    calls.add(stream as unknown as ServerHttp2Stream, address);
    return stream;
  };
  const openMany = (count: number, address: unknown): FakeStream[] =>
    Array.from({ length: count }, () => open(address));

  it('make room for new ones of their address, those that wait longest first', () => {
    const other = open('two');
    const [first, second] = openMany(1_024, 'one');
    expect(refused).toEqual([]);
    openMany(2, 'one');
    expect(refused).toEqual([first, second]);
    expect(first?.code).toBe(constants.NGHTTP2_REFUSED_STREAM);
    expect(other.code).toBeUndefined();
  });

  it('make room for new ones of any address', () => {
    const callers = Array.from({ length: 2_048 }, (_, i) => open(`address ${String(i)}`));
    const last = open('another');
    expect(refused).toEqual([callers[0]]);
    expect(last.code).toBeUndefined();
  });

  it('count no longer when their messages are there, or they are over', () => {
    for (const event of ['end', 'close']) {
      for (const stream of openMany(1_024, 'one')) stream.emit(event);
    }
    openMany(1_024, 'one');
    expect(refused).toEqual([]);
  });
});
