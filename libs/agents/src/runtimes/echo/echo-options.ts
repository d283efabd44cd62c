import type { Message } from '@baton/a2a';
import { z } from 'zod';

export const MAX_CHUNKS = 100_000;
export const MAX_CHUNK_BYTES = 1024 * 1024;
export const MAX_DELAY_MS = 600_000;

const wholeNumber = (min: number, max: number) => {
  const allowed = `must be a whole number from ${min.toString()} to ${max.toString()}`;
  return z.int(allowed).min(min, allowed).max(max, allowed).optional();
};

const options = z.strictObject(
  {
    /** Number of chunks of the one artifact. */
    chunks: wholeNumber(1, MAX_CHUNKS),
    /** Milliseconds before each chunk. */
    delayMs: wholeNumber(0, MAX_DELAY_MS),
    /** Size of each chunk's text in bytes of UTF-8; the whole text when it is not given. */
    chunkBytes: wholeNumber(1, MAX_CHUNK_BYTES),
    /** End badly: `throw` like a broken agent, `failed` like one that can't do what it was asked. */
    fail: z.enum(['throw', 'failed'], 'must be "throw" or "failed"').optional(),
    /** Ask first; the next message to the task is what is echoed. */
    askInput: z.boolean('must be true or false').optional(),
  },
  'must be an object with any of chunks, delayMs, chunkBytes, fail, askInput',
);

/** What `message.metadata.echo` may ask for. */
export type EchoOptions = z.output<typeof options>;

/**
 * Read the options of a message.
 *
 * @returns the options, or a sentence that names the wrong field and says what is allowed
 */
export function readEchoOptions(message: Message): EchoOptions | string {
  const asked: unknown = message.metadata?.echo;
  const result = options.safeParse(asked ?? {});
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys[0] : undefined;
  const field = ['metadata', 'echo', ...(issue?.path ?? []), ...(unknown === undefined ? [] : [unknown])];
  const reason =
    unknown === undefined ? issue?.message : 'is not one of chunks, delayMs, chunkBytes, fail, askInput';
  return `${field.join('.')} ${reason ?? 'is not valid'}`;
}
