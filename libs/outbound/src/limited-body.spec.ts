import fc from 'fast-check';
import { limitedBody } from './limited-body.js';

/** What comes out of a body that arrives in these pieces: its chunks, and why it broke off. */
async function passed(
  pieces: readonly (string | Uint8Array)[],
  bounds: Parameters<typeof limitedBody>[0],
  isEventStream = true,
): Promise<{ chunks: string[]; error?: string }> {
  const source = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(typeof piece === 'string' ? Buffer.from(piece) : piece);
      controller.close();
    },
  });
  const chunks: string[] = [];
  try {
    for await (const chunk of source.pipeThrough(limitedBody(bounds, isEventStream, 'host'))) {
      chunks.push(Buffer.from(chunk as Uint8Array).toString());
    }
    return { chunks };
  } catch (error) {
    return { chunks, error: (error as Error).message };
  }
}
const wide = { maxBytes: 1_000_000, json: true };
const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

describe('a stream of events', () => {
  it('comes out event by event, wherever it was cut and however its lines end', async () => {
    const line = fc.constantFrom('data: {"a":1}', 'event: x', 'id: 1', ': hello', 'data:');
    const end = fc.constantFrom('\n', '\r\n', '\r');
    const events = fc.array(fc.tuple(fc.array(line, { minLength: 1, maxLength: 3 }), end), { maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(
        events,
        fc.array(fc.nat(200), { maxLength: 8 }),
        fc.boolean(),
        async (all, cuts, bom) => {
          const text = all.map(([lines, eol]) => lines.map((each) => each + eol).join('') + eol).join('');
          const bytes = Buffer.from((bom ? '\ufeff' : '') + text);
          const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
          const pieces = at.slice(1).map((to, i) => bytes.subarray(at[i], to));
          const { chunks, error } = await passed(pieces, wide);
          expect(error).toBeUndefined();
          const plain = (each: string): string => each.replace(/\r\n?/g, '\n');
          // A CR at the very end may be half of a CRLF.
          expect(plain(chunks.join('')).trimEnd()).toBe(plain(text).trimEnd());
          for (const chunk of chunks.slice(0, -1)) expect(plain(chunk).endsWith('\n\n')).toBe(true);
        },
      ),
    );
  });

  it.each([
    ['in one line', [`data: ${deep(201)}\n\n`]],
    ['over many lines', [...Array<string>(201).fill('data: [\n'), '\n']],
    [
      'with comments that seem to close it',
      [...Array<string>(21).fill('data: [[[[[[[[[[\n: ]]]]]]]]]]\n'), '\n'],
    ],
    ['behind a byte order mark', [`\ufeffdata: ${deep(201)}\n\n`]],
    ['a byte at a time', Array.from(`data: ${deep(201)}\n\n`)],
    ['over lines that end with CR', [...Array<string>(201).fill('data: [\r'), '\r']],
  ])('ends at JSON that is too deep: %s', async (_what, pieces) => {
    const { error } = await passed(pieces, wide);
    expect(error).toBe('"host" sent an event that is nested deeper than 200 levels');
  });

  it('may be as long as it likes, each event having its own depth', async () => {
    const event = `data: ${deep(150)}\n\n`;
    const { chunks, error } = await passed(Array<string>(500).fill(event), wide);
    expect([chunks.length, error]).toEqual([500, undefined]);
  });

  it('ends where all of it has a bound', async () => {
    const { chunks, error } = await passed(Array<string>(100).fill('data: 1\n\n'), {
      ...wide,
      maxTotalBytes: 90,
    });
    expect(chunks).toHaveLength(10);
    expect(error).toBe('"host" sent a stream of more than 90 bytes');
  });

  it('reaches its parser as one chunk, also an event in many small pieces', async () => {
    const { chunks } = await passed([...Array<string>(20_000).fill('data: 1234567890'), '\n\n'], wide);
    expect(chunks).toHaveLength(1);
  });
});

describe('a chunk with many events', () => {
  it('is one chunk to what reads it', async () => {
    const { chunks } = await passed([':\n\n'.repeat(20_000), 'data: 1\n\ndata: 2\n\ndata'], wide);
    expect(chunks).toEqual([':\n\n'.repeat(20_000), 'data: 1\n\ndata: 2\n\n', 'data']);
  });
});

describe('an answer', () => {
  it.each([
    ['depth', [...Array<string>(201).fill('[')], 'an answer that is nested deeper than 200 levels'],
    ['values', [`[${'1,'.repeat(100_001)}1]`], 'an answer that has more than 100000 JSON values'],
    ['bytes', ['"', 'x'.repeat(1_000_001)], 'an answer of more than 1000000 bytes'],
  ])('ends at too many %s', async (_what, pieces, what) => {
    expect((await passed(pieces, wide, false)).error).toBe(`"host" sent ${what}`);
  });

  it('that is not JSON is not parsed', async () => {
    expect((await passed(['['.repeat(1_000)], { maxBytes: 1_000 }, false)).error).toBeUndefined();
  });
});
