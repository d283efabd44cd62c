import { type TaskStatus, endsTurn, isInterrupted, textOf, USAGE } from '@baton/a2a';
import type { Logger } from '@baton/telemetry';
import { fromAgent } from '../../agent-metadata.js';
import type { AgentOutput, Turn } from '../../agent-runtime.js';
import type { JournaledSteps } from './steps/journaled-steps.js';
import type { TurnSteps } from './steps/turn-steps.js';
import { JournalMismatch } from '../../journal-mismatch.js';
import { cut } from './protocol.js';
import type { TurnStream } from './turn-stream.js';

/** Time that an executor has to stop after `cancelTask`. */
const STOP_MS = 2_000;

/** Characters of a message after a cancel that are kept. */
const MAX_LAST_WORDS = 4_000;

/**
 * Yields the output of an executor in one turn. As on the SDK's own server, the turn ends with a bare message, with a
 * status update that ends turns, or when `execute` returns or calls `finished()`. A published task in such a state ends
 * the turn only when `execute` returns, because executors publish the stored task first and then continue.
 *
 * `cancelTask` is the only way to stop an executor. So it is called once for every reason: a cancel, a lost lease or a
 * shutdown (another worker then starts the turn again). An executor that ignores it is abandoned after 2 s, and its
 * later events are dropped.
 *
 * Steps are stored when all that was published before them is in the log. If all steps under way wait, the code was left:
 * the turn ends with the question of `waitForInput`, or is suspended. `cancelTask` is not called then.
 *
 * Rejects with the error of `execute`, unless the turn was over or stopped before, with a `Suspension`, and with a `JournalMismatch`.
 * @param code hash of the agent's code; undefined = unknown
 * @returns the steps with which the code runs from its beginning, in the same turn; undefined: the turn is over, or was stopped
 */
export async function* converse(
  stream: TurnStream,
  turn: Turn,
  steps: TurnSteps,
  signal: AbortSignal,
  logger: Logger,
  code?: string,
): AsyncGenerator<AgentOutput, TurnSteps | undefined> {
  // A function, because the compiler narrows `signal.aborted` after the first read.
  const stopped = (): boolean => signal.aborted;
  const conversation = new ExecutorTurn(stream, turn, logger);
  const stop = (): void => conversation.stop();
  signal.addEventListener('abort', stop, { once: true });
  if (stopped()) stop();
  let held: TaskStatus | undefined;
  let isOver = false;
  try {
    for await (const sent of stream.sent()) {
      // The output is dropped. This loop only waits until the executor ends.
      if (stopped()) {
        if (signal.reason === 'canceled' && 'output' in sent) conversation.keepLastWords(sent.output);
        continue;
      }
      if ('step' in sent) {
        const { id } = sent.step;
        const reply = await steps.take(sent.step, signal, {
          piece: (piece) => stream.piece(id, piece),
          say: (output) => stream.say(output),
        });
        // Other steps and events continue while a model answers.
        if ('later' in reply) stream.replyLater(id, reply.later);
        else stream.reply(id, reply);
        continue;
      }
      if ('said' in sent) {
        yield sent.said;
        continue;
      }
      const own = conversation.own(sent.output);
      const fresh = sent.isReplayed ? steps.replayed(own) : own;
      if (!fresh) continue;
      const output = withUsage(fresh, steps.journal);
      if (output.$case === 'task') {
        held = endsTheTurn(output.value.status) ? output.value.status : undefined;
        yield held ? { ...output, value: { ...output.value, status: undefined } } : output;
        continue;
      }
      if (output.$case === 'statusUpdate') {
        held = undefined;
        isOver = endsTheTurn(output.value.status);
        if (asks(output.value.status)) await steps.questions.dropQuestions();
      }
      if (output.$case === 'message') isOver = true;
      yield output;
      if (isOver) return undefined;
    }
    if (stopped()) return undefined;
    stream.throwIfFailed();
    isOver = true;
    const { parked, mismatch } = stream;
    if (mismatch !== undefined) {
      throw new JournalMismatch(turn.agent.slug, cut(mismatch, MAX_MISMATCH), code);
    }
    if (parked?.continueAs !== undefined) return await steps.continueAs(parked.continueAs);
    if (parked?.input) yield await steps.questions.ask(parked.input, parked);
    else if (parked) throw steps.suspension(parked);
    else if (steps.journal.compensating?.canceled) {
      const undone = steps.undoneOutput();
      if (undone) yield undone;
    } else if (held) {
      if (asks(held)) await steps.questions.dropQuestions();
      yield withUsage(statusOf(turn, held), steps.journal);
    }
    return undefined;
  } finally {
    signal.removeEventListener('abort', stop);
    // The reader left before the end: stop the executor.
    if (!isOver) conversation.stop();
    conversation.close();
    steps.close();
  }
}

/** Stops the executor of one turn, and corrects the ids of its output. */
class ExecutorTurn {
  private stopped = false;
  private warned = false;
  private stopTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly stream: TurnStream,
    private readonly turn: Turn,
    private readonly logger: Logger,
  ) {}

  /** Call `cancelTask` once, and wait up to `STOP_MS` for the executor to end. */
  stop(): void {
    if (this.stopped || this.stream.hasReturned) return;
    this.stopped = true;
    this.stopTimer = setTimeout(() => {
      this.log('executor ignored cancelTask and was abandoned');
      this.stream.close();
    }, STOP_MS).unref();
    this.stream.cancel();
  }

  close(): void {
    clearTimeout(this.stopTimer);
    this.stream.close();
  }

  /** The task is canceled, and its log is closed: further output of the executor goes to its console. */
  keepLastWords(output: AgentOutput): void {
    const message = output.$case === 'statusUpdate' ? output.value.status?.message : undefined;
    const text = textOf(message?.parts ?? []).trim();
    if (text !== '') this.turn.console.write('info', `After the cancel: ${cut(text, MAX_LAST_WORDS)}`);
  }

  /** Replaces the ids of the output by those of this task, and drops metadata that only the platform writes. */
  own(raw: AgentOutput): AgentOutput {
    const output = fromAgent(raw);
    const { id: taskId, contextId } = this.turn.task;
    const { value } = output;
    const written = output.$case === 'task' ? output.value.id : (value as { taskId: string }).taskId;
    if (written !== '' && written !== taskId && !this.warned) {
      this.warned = true;
      this.log('executor published an event with the id of another task; the id was replaced', { written });
    }
    if (output.$case === 'task') return { ...output, value: { ...output.value, id: taskId, contextId } };
    return { ...output, value: { ...value, taskId, contextId } } as AgentOutput;
  }

  private log(message: string, fields: object = {}): void {
    const { tenantId, runId, task, agent } = this.turn;
    this.logger.warn(message, { tenantId, runId, taskId: task.id, agent: agent.slug, ...fields });
  }
}

const endsTheTurn = (status: TaskStatus | undefined): boolean =>
  status !== undefined && endsTurn(status.state);

const asks = (status: TaskStatus | undefined): boolean => status !== undefined && isInterrupted(status.state);

/**
 * The end of a turn has the tokens of the model calls that Baton has made for the task. Those that the agent reports would be counted
 * a second time.
 */
function withUsage(output: AgentOutput, { usage }: JournaledSteps): AgentOutput {
  if (!usage || output.$case !== 'statusUpdate' || !endsTheTurn(output.value.status)) return output;
  const reported = output.value.metadata?.[USAGE] as { cost?: unknown } | undefined;
  // What the agent has spent elsewhere.
  const cost = typeof reported?.cost === 'string' ? { cost: reported.cost } : {};
  const metadata = { ...output.value.metadata, [USAGE]: { ...usage, ...cost, metered: true } };
  return { ...output, value: { ...output.value, metadata } };
}

function statusOf({ task }: Turn, status: TaskStatus): AgentOutput {
  return {
    $case: 'statusUpdate',
    value: { taskId: task.id, contextId: task.contextId, status, metadata: undefined },
  };
}

/** Maximum characters of the reason why a journal does not fit. */
const MAX_MISMATCH = 1_000;
