import type { Message, Part } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { setImmediate as nextLoop, setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import {
  type AgentOutput,
  type AgentRuntime,
  artifactChunk,
  completed,
  failed,
  inputRequired,
  textPart,
  type Turn,
  turnNumber,
} from '../../runtime.js';

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

/** The whole reply must fit in a task's row when its artifact is folded. */
export const MAX_REPLY_BYTES = 64 * 1024 * 1024;
/** Chunks after which a long reply lets the worker's other runs have their turn. */
const FAIR_SHARE = 256;

/**
 * Answers with what it was sent: one artifact, then `completed` without a message. `metadata.echo` of the
 * message asks for more (see `EchoOptions`), in this order: `askInput` comes before everything else; then the
 * chunks, each of them `delayMs` after what went before it; then `fail`. Without `chunks`, a message that asks
 * to fail gets no artifact. The reply is a function of the message and of the turn's number: another attempt
 * says the same.
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
    // Only a question leads to a second turn, so a later message is always the answer.
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

/** The parts as `chunks` chunks of one artifact. */
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
    // Copies: what is yielded belongs to the worker.
    const artifact = { artifactId, name: 'echo', parts: parts.map((part) => ({ ...part })) };
    yield artifactChunk(turn, artifact, { append: i > 1, lastChunk: i === chunks });
  }
}

/** @returns false if the signal came first */
const slept = (ms: number, signal: AbortSignal): Promise<boolean> =>
  delay(ms, true, { signal }).catch(() => false);

/**
 * The parts that each chunk of an echo carries: those of the message, their text cut or repeated to
 * `chunkBytes` if that is given (several text parts then become one).
 */
export function echoParts(message: Message, chunkBytes: number | undefined): Part[] {
  if (chunkBytes === undefined) return message.parts;
  const texts = message.parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : []));
  if (texts.length === 0) return message.parts;
  const others = message.parts.filter(({ content }) => content?.$case !== 'text');
  return [textPart(textOfBytes(texts.join(''), chunkBytes)), ...others];
}

/**
 * The text cut or repeated to as many bytes of UTF-8 as fit into `bytes` without cutting a character: at most
 * 3 bytes less. An empty text stays empty.
 */
export function textOfBytes(text: string, bytes: number): string {
  // Two halves of a surrogate pair may meet where the text is repeated: its length alone would say too much.
  const period = Buffer.byteLength(text + text) - Buffer.byteLength(text);
  if (period === 0) return '';
  const repeated = text.repeat(Math.ceil(bytes / period));
  const { read } = new TextEncoder().encodeInto(repeated, new Uint8Array(bytes));
  return repeated.slice(0, read);
}

/** Rough size of parts on the wire, in bytes. */
function sizeOf(parts: readonly Part[]): number {
  return parts.reduce((sum, { content }) => {
    if (content?.$case === 'raw') return sum + content.value.length;
    if (content?.$case === 'data') return sum + JSON.stringify(content.value ?? null).length;
    return sum + Buffer.byteLength(content?.value ?? '');
  }, 0);
}
