import { type TaskStatus, endsTurn } from '@baton/a2a';
import type { Logger } from '@baton/telemetry';
import type { AgentExecutor } from '@a2a-js/sdk/server';
import type { AgentOutput, Turn } from '../../runtime.js';
import { requestContext } from './request-context.js';
import { TurnBus } from './turn-bus.js';

/** How long an executor that was told to stop may go on before it is left to itself. */
const STOP_MS = 2_000;

/**
 * Let an executor take one turn. As on the SDK's own server, the turn ends with a bare message, with a status
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
  executor: AgentExecutor,
  turn: Turn,
  signal: AbortSignal,
  logger: Logger,
): AsyncGenerator<AgentOutput> {
  // A function, because the compiler takes what it has once read of a signal for settled.
  const stopped = (): boolean => signal.aborted;
  if (stopped()) return;
  const execution = new Execution(executor, turn, logger);
  const stop = (): void => execution.stop();
  signal.addEventListener('abort', stop, { once: true });
  let held: TaskStatus | undefined;
  try {
    for await (const output of execution.bus.outputs()) {
      // Nobody hears it any more; this only waits for the executor to wind up.
      if (stopped()) continue;
      const said = execution.own(output);
      if (said.$case === 'task') {
        held = endsTheTurn(said.value.status) ? said.value.status : undefined;
        yield held ? { ...said, value: { ...said.value, status: undefined } } : said;
        continue;
      }
      if (said.$case === 'statusUpdate') {
        held = undefined;
        execution.over = endsTheTurn(said.value.status);
      }
      if (said.$case === 'message') execution.over = true;
      yield said;
      if (execution.over) return;
    }
    if (stopped()) return;
    execution.throwIfFailed();
    execution.over = true;
    if (held) yield statusOf(turn, held);
  } finally {
    signal.removeEventListener('abort', stop);
    // A reader who leaves before the end wants no more of it.
    if (!execution.over) execution.stop();
    execution.bus.finished();
  }
}

/** One call of `execute`, with the bus it publishes on. */
class Execution {
  readonly bus = new TurnBus();
  /** The turn has ended: nothing is left to stop. */
  over = false;
  private running = true;
  private stopped = false;
  private failure: { error: unknown } | undefined;
  private warned = false;
  private patience: NodeJS.Timeout | undefined;

  constructor(
    private readonly executor: AgentExecutor,
    private readonly turn: Turn,
    private readonly logger: Logger,
  ) {
    void this.execute();
  }

  private async execute(): Promise<void> {
    try {
      await this.executor.execute(await requestContext(this.turn), this.bus);
    } catch (error) {
      this.failure = { error };
      if (this.over) this.log('executor threw after the end of its turn', error);
    }
    this.running = false;
    clearTimeout(this.patience);
    this.bus.finished();
  }

  throwIfFailed(): void {
    if (this.failure) throw this.failure.error;
  }

  /** Tell the executor once, and wait for it no longer than `STOP_MS`. */
  stop(): void {
    if (this.stopped || !this.running) return;
    this.stopped = true;
    this.patience = setTimeout(() => {
      this.log('executor ignored cancelTask and is left to itself');
      this.bus.finished();
    }, STOP_MS).unref();
    this.cancel().catch((error: unknown) => this.log('cancelTask of the executor failed', error));
  }

  private async cancel(): Promise<void> {
    await this.executor.cancelTask(this.turn.task.id, this.bus);
  }

  /** The output with this task's ids, whatever the executor wrote. */
  own(output: AgentOutput): AgentOutput {
    const { id: taskId, contextId } = this.turn.task;
    const { value } = output;
    const written = output.$case === 'task' ? output.value.id : (value as { taskId: string }).taskId;
    if (written !== '' && written !== taskId && !this.warned) {
      this.warned = true;
      this.logger.warn('executor published for another task; taken as for its own', { ...this.ids, written });
    }
    if (output.$case === 'task') return { ...output, value: { ...output.value, id: taskId, contextId } };
    return { ...output, value: { ...value, taskId, contextId } } as AgentOutput;
  }

  private get ids() {
    const { tenantId, runId, task, agent } = this.turn;
    return { tenantId, runId, taskId: task.id, agent: agent.slug };
  }

  private log(message: string, err?: unknown): void {
    this.logger.warn(message, { ...this.ids, ...(err !== undefined && { err }) });
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
