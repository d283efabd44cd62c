import { FrameReader } from './frame-reader.js';
import { FrameBatch } from './frame-batch.js';

const TEXTS = ['{"a":1}', '', '"Grüße, 你好, 👋"', 'x'.repeat(10_000), '"\\ud83d"'];

const batchOf = (texts: readonly string[]): FrameBatch => {
  const batch = new FrameBatch();
  for (const text of texts) batch.add(text);
  return batch;
};

describe('messages that go together', () => {
  it.each([1, 3, 4, 7, 4096, 100_000])('arrive whole and in their order in pieces of %i bytes', (size) => {
    const bytes = batchOf(TEXTS).take();
    const reader = new FrameReader(20_000);
    const received: string[] = [];
    for (let at = 0; at < bytes.length; at += size) {
      received.push(...reader.push(Buffer.from(bytes.subarray(at, at + size))));
    }
    expect(received).toEqual(TEXTS);
  });

  it('go once, and the next ones after them', () => {
    const batch = batchOf(['one', 'two']);
    const reader = new FrameReader(100);
    expect(reader.push(batch.take())).toEqual(['one', 'two']);
    expect(batch.isEmpty).toBe(true);
    batch.add('three');
    expect(reader.push(batch.take())).toEqual(['three']);
  });

  it('do not gather without end', () => {
    const batch = new FrameBatch();
    let count = 0;
    for (; !batch.isFull; count++) batch.add('x'.repeat(64 * 1024));
    expect(count).toBe(4);
    batch.take();
    expect(batch.isFull).toBe(false);
  });

  it('are refused by their length, before the text has come', () => {
    const [bytes] = [batchOf(['fits', 'x'.repeat(101)]).take()];
    expect(() => new FrameReader(100).push(bytes.subarray(0, 12))).toThrow('a message of 101 bytes');
  });
});
