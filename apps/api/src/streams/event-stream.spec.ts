import { LoopTurns } from '../http/loop-turns.js';
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { type StreamItem, sseRecord } from '@baton/a2a';
import type { Environment } from '@baton/config';
import { Metrics } from '@baton/telemetry';
import { EventStream, type StreamEncoding, type StreamEnd, type StreamOptions } from './event-stream.js';
import { EventStreams } from './event-streams.js';
import { SseOutput } from './sse-output.js';
import { StreamMemory } from './stream-memory.js';

/** A response whose reader takes at most `takes` writes until `drain` is called. */
class SlowResponse extends EventEmitter {
  readonly writes: string[] = [];
  head: Record<string, string> | undefined;
  flushed = false;
  ended = false;
  destroyed = false;
  private readonly waiting: (() => void)[] = [];

  constructor(private takes = Infinity) {
    super();
  }

  get text(): string {
    return this.writes.join('');
  }

  writeHead(_status: number, head: Record<string, string>): void {
    this.head = head;
  }

  flushHeaders(): void {
    this.flushed = true;
  }

  write(bytes: Buffer, taken: () => void): boolean {
    this.writes.push(bytes.toString());
    this.emit('written', bytes);
    // Before any timer, however slow the machine is: this reader does not stall.
    if (this.takes > 0) process.nextTick(taken);
    else this.waiting.push(taken);
    this.takes -= 1;
    return this.takes > 0;
  }

  drain(): void {
    this.takes = Infinity;
    for (const taken of this.waiting.splice(0)) taken();
  }

  end(): void {
    this.ended = true;
    this.emit('ended');
  }

  leave(): void {
    this.destroyed = true;
    this.emit('close');
  }

  destroy(): void {
    this.leave();
  }
}

const encoding: StreamEncoding = {
  item: ({ sequence }) => [{ sequence, data: sseRecord(JSON.stringify({ result: sequence }), { sequence }) }],
  error: (error) => sseRecord(JSON.stringify({ error: (error as Error).message }), {}),
};

function open(response: SlowResponse, options: Partial<StreamOptions> = {}) {
  const caller = new AbortController();
  const output = new SseOutput(response as unknown as ServerResponse, { 'x-request-id': 'r1' });
  const stream = new EventStream(output, caller, {
    turnFor: async () => undefined,
    bufferBytes: 1024,
    stallMs: 60_000,
    memory: new StreamMemory(),
    ...options,
  });
  stream.open();
  return { stream, caller };
}

const item = (sequence: number): StreamItem => ({ sequence, payload: {} as StreamItem['payload'] });

async function* items(count: number, seen: number[] = []): AsyncGenerator<StreamItem[]> {
  for (let sequence = 1; sequence <= count; sequence += 1) {
    seen.push(sequence);
    yield [item(sequence)];
  }
}

/** One item, and then silence until the signal aborts. */
async function* silentAfterOne(signal: AbortSignal): AsyncGenerator<StreamItem[]> {
  yield [item(1)];
  await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('SSE stream', () => {
  it('sends its headers before there is anything to say', async () => {
    const response = new SlowResponse();
    const { stream } = open(response);
    expect(response.head).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
      'x-request-id': 'r1',
    });
    await turn();
    expect(response.flushed).toBe(true);
    stream.close('shutdown', 'the end');
  });

  it('writes id and data of each item, in order, and ends', async () => {
    const response = new SlowResponse();
    const { stream, caller } = open(response);
    await expect(stream.pipe(items(2), encoding)).resolves.toBe('completed');
    expect(response.text).toBe('id: 1\ndata: {"result":1}\n\nid: 2\ndata: {"result":2}\n\n');
    expect(response.ended).toBe(true);
    expect(caller.signal.aborted).toBe(true);
  });

  it('takes a turn for many small events, as for one large one', async () => {
    const chars: number[] = [];
    const { stream } = open(new SlowResponse(), {
      turnFor: async (each) => void chars.push(each),
      bufferBytes: 1_000_000,
    });
    const together = Array.from({ length: 100 }, (_, i) => ({ ...item(i + 1), json: 'x'.repeat(1_000) }));
    const source = async function* (): AsyncGenerator<StreamItem[]> {
      yield [{ ...item(0), json: 'x'.repeat(100_000) }];
      yield together;
    };
    await stream.pipe(source(), encoding);
    expect(chars).toEqual([100_000, 66_000]);
  });

  it('takes the items out of the array, which its source keeps until the next one comes', async () => {
    const kept: StreamItem[][] = [];
    const source = async function* (): AsyncGenerator<StreamItem[]> {
      for (const together of [[item(1)], [item(2), item(3)]]) {
        yield together;
        kept.push(together);
      }
    };
    const response = new SlowResponse();
    await open(response).stream.pipe(source(), encoding);
    expect(kept).toEqual([[], []]);
    expect(response.text.match(/id: \d/g)).toEqual(['id: 1', 'id: 2', 'id: 3']);
  });

  it('adds nothing after its end, though its last record comes then', async () => {
    const response = new SlowResponse();
    const { stream } = open(response);
    let say: (record: string) => void = () => undefined;
    let asked: () => void = () => undefined;
    const isAsked = new Promise<void>((resolve) => (asked = resolve));
    const last = () => {
      asked();
      return new Promise<string>((resolve) => (say = resolve));
    };
    const piped = stream.pipe(items(1), { ...encoding, last });
    await isAsked;
    stream.close('shutdown', 'this server is shutting down');
    say('data: the last record');
    expect(await piped).toBe('shutdown');
    await turn();
    expect(response.text).toContain('this server is shutting down');
    expect(response.text).not.toContain('the last record');
  });

  it('puts items that are ready together into one write', async () => {
    const response = new SlowResponse();
    await open(response).stream.pipe(items(20), encoding);
    expect(response.writes).toHaveLength(1);
  });

  it('sends headers, items and the end together if they are ready together', async () => {
    const response = new SlowResponse(0);
    const done = open(response).stream.pipe(items(2), encoding);
    const ended = new Promise((resolve) => response.once('ended', resolve));
    await ended;
    expect([response.flushed, response.writes.length]).toEqual([false, 1]);
    response.drain();
    expect(await done).toBe('completed');
  });

  it('does not hold back an item because no other follows', async () => {
    const response = new SlowResponse();
    const { stream, caller } = open(response);
    const written = new Promise((resolve) => response.once('written', resolve));
    const done = stream.pipe(silentAfterOne(caller.signal), encoding);
    await written;
    expect(response.text).toContain('id: 1\n');
    stream.close('shutdown', 'over');
    await done;
  });

  it('stops asking for items when the buffer is full, and goes on where it was after the reader took them', async () => {
    const response = new SlowResponse(0);
    const seen: number[] = [];
    const { stream } = open(response, { bufferBytes: 100 });
    const done = stream.pipe(items(50, seen), encoding);
    for (let n = 0; n < 100; n += 1) await turn();
    expect(seen.length).toBeLessThan(10);
    response.drain();
    await done;
    expect([...response.text.matchAll(/id: (\d+)/g)].map(([, id]) => Number(id))).toEqual(seen);
    expect(seen).toHaveLength(50);
  });

  it.each(['takes them late', 'leaves'])(
    'writes no more of items that came together than fit, and its reader %s',
    async (what) => {
      const response = new SlowResponse(0);
      const { stream } = open(response, { bufferBytes: 100 });
      const encoded: number[] = [];
      const noted: StreamEncoding = {
        ...encoding,
        item: (one) => {
          encoded.push(one.sequence);
          return encoding.item(one);
        },
      };
      const all = Array.from({ length: 50 }, (_, i) => i + 1);
      async function* together(): AsyncGenerator<StreamItem[]> {
        yield all.map(item);
      }
      const done = stream.pipe(together(), noted);
      for (let n = 0; n < 100; n += 1) await turn();
      expect(encoded.length).toBeLessThan(10);
      if (what === 'leaves') response.leave();
      else response.drain();
      await expect(done).resolves.toBe(what === 'leaves' ? 'caller-left' : 'completed');
      if (what === 'leaves') expect(encoded.length).toBeLessThan(10);
      else expect(encoded).toEqual(all);
    },
  );

  it('hands a large frame over in pieces, each a sign of life of its reader', async () => {
    const response = new SlowResponse();
    const text = 'ü€😀'.repeat(50_000);
    const large: StreamEncoding = { ...encoding, item: ({ sequence }) => [{ sequence, data: text }] };
    const sent: Buffer[] = [];
    response.on('written', (bytes: Buffer) => sent.push(bytes));
    await open(response).stream.pipe(items(1), large);
    expect(Buffer.concat(sent).toString()).toBe(text);
    expect(Math.max(...sent.map(({ length }) => length))).toBeLessThanOrEqual(64 * 1024);
  });

  it('closes a reader that takes nothing, with the reason, and it can resume', async () => {
    const response = new SlowResponse(0);
    const ended = new Promise<StreamEnd>((onEnd) => {
      const { stream, caller } = open(response, { bufferBytes: 50, stallMs: 5, onEnd });
      void stream.pipe(items(1000), encoding);
      caller.signal.addEventListener('abort', () => response.emit('aborted'));
    });
    const aborted = new Promise((resolve) => response.once('aborted', resolve));
    await expect(ended).resolves.toBe('fell-behind');
    await aborted;
    expect(response.ended).toBe(false);
    const over = new Promise((resolve) => response.once('ended', resolve));
    response.drain();
    await over;
    expect(response.text).toMatch(/: closed: the reader fell behind; resume with Last-Event-ID: \d+\n$/);
  });

  it('cuts a reader off that stalls after the last event', async () => {
    const response = new SlowResponse(0);
    const { stream } = open(response, { stallMs: 5 });
    await expect(stream.pipe(items(3), encoding)).resolves.toBe('completed');
    expect(response.destroyed).toBe(true);
  });

  it('leaves a reader alone that has taken everything, however quiet the task is', async () => {
    const response = new SlowResponse();
    const { stream, caller } = open(response, { stallMs: 1 });
    const done = stream.pipe(silentAfterOne(caller.signal), encoding);
    while (response.writes.length < 5) {
      stream.beat();
      await turn();
    }
    expect(caller.signal.aborted).toBe(false);
    stream.close('shutdown', 'over');
    await done;
  });

  it('aborts its source and forgets its listeners when the caller leaves', async () => {
    const response = new SlowResponse();
    const ends: string[] = [];
    const { stream, caller } = open(response, { onEnd: (end) => ends.push(end) });
    const done = stream.pipe(silentAfterOne(caller.signal), encoding);
    await turn();
    response.leave();
    await expect(done).resolves.toBe('caller-left');
    expect(caller.signal.aborted).toBe(true);
    expect(response.listenerCount('close')).toBe(0);
    expect(ends).toEqual(['caller-left']);
  });

  it('notices a caller that has left before the stream was opened', async () => {
    const response = new SlowResponse();
    response.destroyed = true;
    const { stream, caller } = open(response);
    await expect(stream.pipe(silentAfterOne(caller.signal), encoding)).resolves.toBe('caller-left');
    expect(response.writes).toEqual([]);
  });

  it('ends with an error frame when its source fails', async () => {
    async function* failing(): AsyncGenerator<StreamItem[]> {
      yield [item(1)];
      throw new Error('no more');
    }
    const response = new SlowResponse();
    await expect(open(response).stream.pipe(failing(), encoding)).resolves.toBe('failed');
    expect(response.text).toBe('id: 1\ndata: {"result":1}\n\ndata: {"error":"no more"}\n\n');
    expect(response.ended).toBe(true);
  });

  it('ignores the error of a source that fails because the stream was closed', async () => {
    const response = new SlowResponse();
    const { stream, caller } = open(response);
    async function* failing(): AsyncGenerator<StreamItem[]> {
      yield* silentAfterOne(caller.signal);
      throw new Error('aborted');
    }
    const done = stream.pipe(failing(), encoding);
    await turn();
    stream.close('shutdown', 'this server is shutting down');
    await expect(done).resolves.toBe('shutdown');
    expect(response.text).not.toContain('aborted');
    expect(response.text).toMatch(/: closed: this server is shutting down; resume with Last-Event-ID: 1\n$/);
  });

  it('keeps an idle connection busy with heartbeats, and has none after its end', async () => {
    const response = new SlowResponse();
    const { stream } = open(response);
    stream.beat();
    stream.beat();
    await new Promise((resolve) => response.once('written', resolve));
    expect(response.text).toBe(': heartbeat\n');
    const over = new Promise((resolve) => response.once('ended', resolve));
    stream.close('shutdown', 'over');
    await over;
    const { length } = response.writes;
    stream.beat();
    await turn();
    expect(response.writes).toHaveLength(length);
  });
});

describe('the streams of a process', () => {
  const HEARTBEAT_MS = 40;
  const settings = {
    sseHeartbeatMs: HEARTBEAT_MS,
    sseBufferBytes: 1024,
    sseBufferTotalBytes: 2048,
    sseStallMs: 60_000,
  };
  const environment = settings as Environment;
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;

  /** So many streams that say nothing. */
  function serve(
    streams: EventStreams,
    count: number,
  ): { responses: SlowResponse[]; done: Promise<unknown> } {
    const responses = Array.from({ length: count }, () => new SlowResponse());
    const sent = responses.map((raw) => {
      const caller = new AbortController();
      const reply = { raw, getHeaders: () => ({}), hijack: () => undefined };
      const output = () => SseOutput.hijack(reply as never);
      const target = { writer: { ...encoding, output }, caller, request: {} } as never;
      return streams.send(silentAfterOne(caller.signal), target);
    });
    return { responses, done: Promise.all(sent) };
  }

  it('have no timer each for their heartbeats', async () => {
    const streams = new EventStreams(new Metrics(), environment, new LoopTurns());
    const before = timers();
    const { done } = serve(streams, 100);
    expect(timers()).toBe(before);
    streams.closeAll();
    await done;
  });

  it('hold a bounded number of events for slow readers together, and each goes on when its reader does', async () => {
    const streams = new EventStreams(new Metrics(), environment, new LoopTurns());
    const seen: number[][] = [];
    const slow = Array.from({ length: 20 }, () => new SlowResponse(0));
    const sent = slow.map((raw, i) => {
      const reply = { raw, getHeaders: () => ({}), hijack: () => undefined };
      const target = {
        writer: { ...encoding, output: () => SseOutput.hijack(reply as never) },
        caller: new AbortController(),
        request: {},
      } as never;
      return streams.send(items(50, (seen[i] = [])), target);
    });
    for (let n = 0; n < 200; n += 1) await turn();
    const perEvent = sseRecord(JSON.stringify({ result: 10 }), { sequence: 10 }).length;
    // One event and what the socket has, beside the total.
    expect(seen.flat().length * perEvent).toBeLessThan(2048 + 20 * 3 * perEvent);
    // No stream was ended.
    expect(seen.every((each) => each.length > 0)).toBe(true);
    for (const response of slow) response.drain();
    await Promise.all(sent);
    expect(seen.map((each) => each.length)).toEqual(Array<number>(20).fill(50));
  });

  it('leave their share of that to the others when they are over', async () => {
    const large = { ...settings, sseBufferBytes: 1_000_000 } as Environment;
    const streams = new EventStreams(new Metrics(), large, new LoopTurns());
    const { done } = serve(streams, 1);
    await turn();
    await turn();
    /** One event, which the socket takes, and then more, which wait for the reader. */
    const source = async function* (seen: number[]): AsyncGenerator<StreamItem[]> {
      yield [item(1)];
      await turn();
      await turn();
      yield* items(500, seen);
    };
    /** Begins a stream whose reader takes nothing. `taken`: how many events wait for it. */
    const beginSlow = async () => {
      const [slow, seen]: [SlowResponse, number[]] = [new SlowResponse(0), []];
      const reply = { raw: slow, getHeaders: () => ({}), hijack: () => undefined };
      const output = () => SseOutput.hijack(reply as never);
      const target = { writer: { ...encoding, output }, caller: new AbortController(), request: {} };
      const sent = streams.send(source(seen), target as never);
      for (let n = 0; n < 500; n += 1) await turn();
      return { taken: seen.length, sent, slow };
    };
    const takenByTwo = async (): Promise<number[]> => {
      const two = [await beginSlow(), await beginSlow()];
      for (const { slow } of two) slow.leave();
      await Promise.all(two.map(({ sent }) => sent));
      return two.map(({ taken }) => taken);
    };
    const [first = 0, second = 0] = await takenByTwo();
    // All of the memory, and then a third of it: the idle stream has a share as well.
    expect(second).toBeLessThan(first / 2);
    for (let n = 0; n < 3; n += 1) expect(await takenByTwo()).toEqual([first, second]);
    streams.closeAll();
    await done;
  });

  it('all get heartbeats, and not all at once', async () => {
    const streams = new EventStreams(new Metrics(), environment, new LoopTurns());
    const { responses, done } = serve(streams, 100);
    const beats = () => responses.filter(({ text }) => text.includes(': heartbeat')).length;
    const seen = new Set<number>();
    while (beats() < 100) {
      seen.add(beats());
      await turn();
    }
    expect(seen.size).toBeGreaterThan(2);
    streams.closeAll();
    await done;
  });
});
