import type { Message, Part } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { setImmediate as nextLoop, setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import {
  type AgentOutput,
  artifactChunk,
  completed,
  failed,
  inputRequired,
  plainTextPart,
  type Turn,
  turnNumber,
} from '../../agent-runtime.js';
import { type AgentRuntime } from '../../runtime-table.js';
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

/** Maximum size of a reply: the whole artifact must fit into a task's row. */
export const MAX_REPLY_BYTES = 64 * 1024 * 1024;
/** After this many chunks, a long reply yields to the worker's other runs. */
const FAIR_SHARE = 256;

/**
 * Echoes the message: one artifact, then `completed` without a message. `metadata.echo` of the message changes that (see
 * `EchoOptions`), in this order: `askInput`; then the chunks, each after `delayMs`; then `fail`. A message with `fail`
 * and without `chunks` gets no artifact. The reply depends only on the message and the turn's number, so every attempt
 * gives the same reply.
 */
@Injectable()
export class EchoRuntime implements AgentRuntime {
  readonly name = 'echo';

  async *run(turn: Turn, signal: AbortSignal): AsyncGenerator<AgentOutput> {
    const options = readEchoOptions(turn.message);
    if (typeof options === 'string') {
      yield failed(turn, options);
      return;
    }
    const { askInput, fail, chunks = 1, chunkBytes } = options;
    // Only a question starts a second turn, so a later message is always the answer.
    if (askInput && turnNumber(turn) === 1) {
      yield inputRequired(turn, 'What shall I echo? The next message to this task is the answer.');
      return;
    }
    const parts = echoParts(turn.message, chunkBytes);
    if (chunks > 1 && sizeOf(parts) * chunks > MAX_REPLY_BYTES) {
      yield failed(
        turn,
        `metadata.echo.chunks asks for a reply of more than ${MAX_REPLY_BYTES.toString()} bytes`,
      );
      return;
    }
    if (!fail || options.chunks !== undefined) yield* echo(turn, parts, options, signal);
    if (signal.aborted) return;
    if (fail === 'throw') throw new Error('metadata.echo.fail asked the agent to throw');
    yield fail ? failed(turn, 'metadata.echo.fail asked for a failed task') : completed(turn);
  }
}

/** Yields the parts `chunks` times, as chunks of one artifact. */
async function* echo(
  turn: Turn,
  parts: readonly Part[],
  { chunks = 1, delayMs = 0 }: EchoOptions,
  signal: AbortSignal,
): AsyncGenerator<AgentOutput> {
  const artifactId = `echo-${turnNumber(turn).toString()}`;
  for (let i = 1; i <= chunks && !signal.aborted; i++) {
    if (delayMs > 0 && !(await slept(delayMs, signal))) return;
    if (i % FAIR_SHARE === 0) await nextLoop();
    // Copies, because yielded objects belong to the worker.
    const artifact = { artifactId, name: 'echo', parts: parts.map((part) => ({ ...part })) };
    yield artifactChunk(turn, artifact, { append: i > 1, lastChunk: i === chunks });
  }
}

/** @returns false if the signal aborted first */
const slept = (ms: number, signal: AbortSignal): Promise<boolean> =>
  delay(ms, true, { signal }).catch(() => false);

/**
 * The parts of each chunk: those of the message. With `chunkBytes` all text parts become one, cut or repeated to that
 * size.
 */
export function echoParts(message: Message, chunkBytes: number | undefined): Part[] {
  if (chunkBytes === undefined) return message.parts;
  const texts = message.parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : []));
  if (texts.length === 0) return message.parts;
  const others = message.parts.filter(({ content }) => content?.$case !== 'text');
  return [plainTextPart(textOfBytes(texts.join(''), chunkBytes)), ...others];
}

/**
 * Cuts or repeats a text to `bytes` bytes of UTF-8 without splitting a character. The result may be up to 3 bytes
 * shorter. An empty text stays empty.
 */
export function textOfBytes(text: string, bytes: number): string {
  // A repetition may join two halves of a surrogate pair, so the length of one text would be too large.
  const period = Buffer.byteLength(text + text) - Buffer.byteLength(text);
  if (period === 0) return '';
  const repeated = text.repeat(Math.ceil(bytes / period));
  const { read } = new TextEncoder().encodeInto(repeated, new Uint8Array(bytes));
  return repeated.slice(0, read);
}

/** Approximate size of parts on the wire, in bytes. */
function sizeOf(parts: readonly Part[]): number {
  return parts.reduce((sum, { content }) => {
    if (content?.$case === 'raw') return sum + content.value.length;
    if (content?.$case === 'data') return sum + JSON.stringify(content.value ?? null).length;
    return sum + Buffer.byteLength(content?.value ?? '');
  }, 0);
}
