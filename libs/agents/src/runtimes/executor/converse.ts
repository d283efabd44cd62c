import { type TaskStatus, endsTurn } from '@baton/a2a';
import type { Logger } from '@baton/telemetry';
import type { AgentOutput, Turn } from '../../runtime.js';
import type { TurnStream } from './turn-stream.js';

/** How long an executor that was told to stop may go on before it is left to itself. */
const STOP_MS = 2_000;

/**
 * What an executor says in one turn. As on the SDK's own server, the turn ends with a bare message, with a status
 * update that ends turns, or when `execute` returns or calls `finished()`; a task that is published in such a
 * state ends it only then, because executors publish the stored task first and go on.
 *
 * `cancelTask` is the only way to tell an executor to stop, so it is called (once) whatever the reason: a
 * cancel, and also a lost lease or a shutdown, after which another worker begins the turn anew. An executor
 * that ignores it is abandoned after 2 s; what it publishes then reaches nobody.
 *
 * Rejects with what `execute` rejects with, unless the turn was over or stopped by then.
 */
export async function* converse(
  stream: TurnStream,
  turn: Turn,
  signal: AbortSignal,
  logger: Logger,
): AsyncGenerator<AgentOutput> {
  // A function, because the compiler takes what it has once read of a signal for settled.
  const stopped = (): boolean => signal.aborted;
  const conversation = new Conversation(stream, turn, logger);
  const stop = (): void => conversation.stop();
  signal.addEventListener('abort', stop, { once: true });
  if (stopped()) stop();
  let held: TaskStatus | undefined;
  let isOver = false;
  try {
    for await (const output of stream.outputs()) {
      // Nobody hears it any more; this only waits for the executor to wind up.
      if (stopped()) continue;
      const said = conversation.own(output);
      if (said.$case === 'task') {
        held = endsTheTurn(said.value.status) ? said.value.status : undefined;
        yield held ? { ...said, value: { ...said.value, status: undefined } } : said;
        continue;
      }
      if (said.$case === 'statusUpdate') {
        held = undefined;
        isOver = endsTheTurn(said.value.status);
      }
      if (said.$case === 'message') isOver = true;
      yield said;
      if (isOver) return;
    }
    if (stopped()) return;
    stream.throwIfFailed();
    isOver = true;
    if (held) yield statusOf(turn, held);
  } finally {
    signal.removeEventListener('abort', stop);
    // A reader who leaves before the end wants no more of it.
    if (!isOver) conversation.stop();
    conversation.close();
  }
}

/** What the worker does about one turn besides listening. */
class Conversation {
  private stopped = false;
  private warned = false;
  private patience: NodeJS.Timeout | undefined;

  constructor(
    private readonly stream: TurnStream,
    private readonly turn: Turn,
    private readonly logger: Logger,
  ) {}

  /** Tell the executor once, and wait for it no longer than `STOP_MS`. */
  stop(): void {
    if (this.stopped || this.stream.hasReturned) return;
    this.stopped = true;
    this.patience = setTimeout(() => {
      this.log('executor ignored cancelTask and is left to itself');
      this.stream.close();
    }, STOP_MS).unref();
    this.stream.cancel();
  }

  close(): void {
    clearTimeout(this.patience);
    this.stream.close();
  }

  /** The output with this task's ids, whatever the executor wrote. */
  own(output: AgentOutput): AgentOutput {
    const { id: taskId, contextId } = this.turn.task;
    const { value } = output;
    const written = output.$case === 'task' ? output.value.id : (value as { taskId: string }).taskId;
    if (written !== '' && written !== taskId && !this.warned) {
      this.warned = true;
      this.log('executor published for another task; taken as for its own', { written });
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

function statusOf({ task }: Turn, status: TaskStatus): AgentOutput {
  return {
    $case: 'statusUpdate',
    value: { taskId: task.id, contextId: task.contextId, status, metadata: undefined },
  };
}
