import type { Message } from '@baton/a2a';
import { z } from 'zod';
import { wholeNumber } from '../../setting-fields.js';

/** Maximum number of pieces that `metadata.echo` may ask for: callers choose the amount of work. */
export const MAX_CHUNKS = 100_000;
/** Maximum bytes of one piece: far below the largest event of an agent. */
export const MAX_CHUNK_BYTES = 1024 * 1024;
/** Maximum pause: a run that waits holds its slot. */
export const MAX_DELAY_MS = 600_000;

const options = z.strictObject(
  {
    /** Number of chunks of the one artifact. */
    chunks: wholeNumber(1, MAX_CHUNKS).optional(),
    /** Pause before each chunk, in ms. */
    delayMs: wholeNumber(0, MAX_DELAY_MS).optional(),
    /** Size of each chunk's text in bytes of UTF-8. Default: the whole text. */
    chunkBytes: wholeNumber(1, MAX_CHUNK_BYTES).optional(),
    /** `throw`: fail like a broken agent. `failed`: end with a failed status. */
    fail: z.enum(['throw', 'failed'], 'must be "throw" or "failed"').optional(),
    /** Ask first, and echo the next message to the task. */
    askInput: z.boolean('must be true or false').optional(),
  },
  'must be an object with any of chunks, delayMs, chunkBytes, fail, askInput',
);

/** The options in `message.metadata.echo`. */
export type EchoOptions = z.output<typeof options>;

/**
 * Reads the options of a message.
 * @returns the options, or a sentence with the wrong field and the allowed values
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
