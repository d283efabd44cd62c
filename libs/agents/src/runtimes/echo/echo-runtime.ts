import type { Part } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { setImmediate as nextLoop, setTimeout as delay } from 'node:timers/promises';
import { artifactChunk, completed, failed, inputRequired } from '../../reply.js';
import type { AgentOutput, AgentRuntime, Turn } from '../../runtime.js';
import { turnNumber } from '../../turn.js';
import { type EchoOptions, readEchoOptions } from './echo-options.js';
import { echoParts, sizeOf } from './echo-parts.js';

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
