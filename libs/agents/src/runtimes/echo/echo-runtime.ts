import type { Part } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { setImmediate as nextLoop, setTimeout as delay } from 'node:timers/promises';
import {
  type AgentOutput,
  artifactChunk,
  completed,
  failed,
  inputRequired,
  type Turn,
  turnNumber,
} from '../../agent-runtime.js';
import type { AgentRuntime } from '../../runtime-table.js';
import { type EchoOptions, readEchoOptions } from './echo-options.js';
import { echoParts } from './echo-parts.js';

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

/** Approximate size of parts on the wire, in bytes. */
function sizeOf(parts: readonly Part[]): number {
  return parts.reduce((sum, { content }) => {
    if (content?.$case === 'raw') return sum + content.value.length;
    if (content?.$case === 'data') return sum + JSON.stringify(content.value ?? null).length;
    return sum + Buffer.byteLength(content?.value ?? '');
  }, 0);
}
