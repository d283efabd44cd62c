import { SequenceTap } from './sequence-tap.js';

const STREAM = [
  ': heartbeat\n\n',
  'id: 1\ndata: {"a":1}\n\n',
  'id: 2\r\ndata: {"text":"id: 99"}\r\n\r\n',
  ': heartbeat\n\n',
  'data: {}\n\n',
  `id: 13\ndata: ${'x'.repeat(1000)}\ndata: more\n\n`,
].join('');

/** Every sequence of the stream when it comes in pieces of that size. */
function sequences(size: number): (number | undefined)[] {
  const tap = new SequenceTap();
  for (let at = 0; at < STREAM.length; at += size) tap.feed(STREAM.slice(at, at + size));
  return [tap.next(), tap.next(), tap.next(), tap.next()];
}

describe('the sequences of a stream', () => {
  it.each([1, 2, 7, 100, STREAM.length])('are found when it comes in pieces of %d characters', (size) =>
    expect(sequences(size)).toEqual([1, 2, undefined, 13]),
  );
});
