import {
  type CallContext,
  ProtocolError,
  type SendMessageRequest,
  type SendResult,
  type StreamItem,
  type Task,
  TaskFold,
  type TaskSnapshot,
  TaskState,
  endsTurn,
  isTerminal,
} from '@baton/a2a';
import { Environment } from '@baton/config';
import { type StoredTask, TaskStore } from '@baton/database';
import type { PublishedEvent } from '@baton/messaging';
import { Injectable } from '@nestjs/common';
import type { TaskWatch, WatchedEvent } from '../relay/task-watch.js';
import { WorkerWatch } from '../platform/worker-watch.js';
import { type Opening, TaskFinder, takeFirst } from './task-finder.js';
import { MessageRouter } from './message-router.js';

/** SendMessage and SendStreamingMessage (A2A 1.0 §3.1.1, §3.1.2). */
@Injectable()
export class SendOperations {
  constructor(
    private readonly router: MessageRouter,
    private readonly tasks: TaskStore,
    private readonly finder: TaskFinder,
    private readonly workers: WorkerWatch,
    private readonly environment: Environment,
  ) {}

  /** Blocks until the turn ends, unless `returnImmediately`. Rejects with `agent-threw` if the agent did. */
  async sendMessage(
    call: CallContext,
    request: SendMessageRequest,
    signal: AbortSignal,
  ): Promise<SendResult> {
    const historyLength = request.configuration?.historyLength;
    const wait: Wait = { isOver: false };
    const limit = this.limitWait(call, wait);
    try {
      const turn = await this.router.route(call, request, signal);
      dropMessage(call, request);
      const { priorArtifacts } = turn;
      if (request.configuration?.returnImmediately) {
        const value = await this.finder.withHistory(call, turn.snapshot.task, historyLength);
        return { $case: 'task', value, priorArtifacts };
      }
      const { id } = turn.snapshot.task;
      const seen = new SeenTurn(turn.snapshot);
      if (!turnIsOver(turn.snapshot.task)) {
        wait.watch = turn.watch;
        if (wait.isOver) turn.watch.end();
        for await (const events of this.finder.follow(call, id, turn.watch)) {
          for (const event of events.splice(0)) seen.apply(event);
        }
      }
      if (seen.result) {
        const task = await this.finder.withHistory(call, seen.result.task, historyLength);
        return replyOf(call, { ...seen.result, task }, priorArtifacts);
      }
      // If earlier tasks are part of the history, only the whole history shows what is left out.
      const shorter = call.rules.history === 'task' && historyLength !== undefined ? { historyLength } : {};
      const stored = await this.tasks.get(call.tenantId, id, { ...shorter, memory: call.memory });
      if (!stored) throw await this.finder.notFound(call, id, id);
      const task = await this.finder.withHistory(call, stored.task, historyLength);
      return replyOf(call, { ...stored, task }, priorArtifacts);
    } finally {
      clearInterval(limit);
    }
  }

  /**
   * Some profiles limit how long a caller waits. Then the wait ends and the run continues. Without such a limit, the
   * wait ends when no worker is alive: no answer would come before the caller gives up.
   */
  private limitWait({ rules }: CallContext, wait: Wait): NodeJS.Timeout {
    const end = (): void => {
      wait.isOver = true;
      wait.watch?.end();
    };
    return setInterval(() => {
      if (rules.wait === 'limited') return end();
      // Unknown while Postgres is away.
      void this.workers.load().then(
        ({ liveWorkers }) => liveWorkers === 0 && end(),
        () => undefined,
      );
    }, this.environment.sendWaitMs);
  }

  /** The task as accepted, then every event up to the one that ends the turn. */
  async *sendStreamingMessage(
    call: CallContext,
    request: SendMessageRequest,
    signal: AbortSignal,
  ): AsyncGenerator<StreamItem[]> {
    const opening = await this.open(call, request, signal);
    if (opening.first) yield takeFirst(opening);
    if (opening.isOver) return;
    const { watch, taskId } = opening;
    const isLimited = call.rules.streamWait === 'limited';
    const limit = isLimited ? setTimeout(() => watch.end(), this.environment.sendWaitMs) : undefined;
    try {
      yield* this.finder.follow(call, taskId, watch, call.rules.streamEnds);
    } finally {
      clearTimeout(limit);
    }
  }

  private async open(
    call: CallContext,
    request: SendMessageRequest,
    signal: AbortSignal,
  ): Promise<Opening & { watch: TaskWatch }> {
    const { snapshot, watch } = await this.router.route(call, request, signal);
    dropMessage(call, request);
    const value = await this.finder.withHistory(call, snapshot.task, request.configuration?.historyLength);
    return {
      first: { sequence: snapshot.sequence, payload: { $case: 'task', value } },
      taskId: snapshot.task.id,
      isOver: streamIsOver(call, snapshot.task),
      watch,
    };
  }
}

/** The message is stored. The call still has its request, and may wait for hours. */
function dropMessage({ onStored }: CallContext, request: SendMessageRequest): void {
  request.message = undefined;
  onStored?.();
}

/** The wait of a blocking caller. */
interface Wait {
  isOver: boolean;
  /** Unset until the message is accepted. */
  watch?: TaskWatch;
}

/** Maximum size of the signals of a turn, in characters. The task of a larger turn is read from the log, within the budget of reads. */
const MAX_SEEN_CHARS = 256 * 1024;

/**
 * A task after its first turn, from the signals of that turn: it need not be read again. Undecided after anything but a
 * first attempt whose signals have all arrived. A blocking send takes 9 % longer without it, and 6 % more CPU (five rounds
 * in turns, stock services). To take it out, continue without `seen.result`: the task is read then.
 */
class SeenTurn {
  private readonly fold: TaskFold | undefined;
  private chars = 0;
  private isWhole: boolean;
  private outcome: PublishedEvent['outcome'];

  constructor({ task, sequence }: TaskSnapshot) {
    this.isWhole = sequence === 1;
    if (!this.isWhole) return;
    this.fold = new TaskFold();
    this.fold.apply({ $case: 'task', value: task });
  }

  apply({ attempt, payload, signal }: WatchedEvent): void {
    this.chars += signal?.chars ?? Infinity;
    this.isWhole &&= attempt === 1 && this.chars <= MAX_SEEN_CHARS;
    if (!this.isWhole) return;
    this.fold?.apply(payload);
    this.outcome = signal?.outcome;
  }

  /** The task with all its events, equal to its row. Undefined: it must be read from the row. */
  get result(): Pick<StoredTask, 'task' | 'outcome'> | undefined {
    const { fold, isWhole, outcome } = this;
    if (!fold || !isWhole || !outcome) return undefined;
    return { task: fold.task(), outcome: outcome === 'none' ? null : outcome };
  }
}

/** A cancel can end the turn before it is first read. A repeated call can join an ended task. */
const turnIsOver = (task: Task): boolean => task.status !== undefined && endsTurn(task.status.state);

/** A stream that continues over interruptions ends only with the task. */
const streamIsOver = ({ rules }: CallContext, task: Task): boolean =>
  rules.streamEnds === 'with-turn'
    ? turnIsOver(task)
    : task.status !== undefined && isTerminal(task.status.state);

/** The answer to a blocking caller: the task, the agent's bare message, or the error that the agent threw. */
function replyOf(
  { rules }: CallContext,
  { task, outcome }: Pick<StoredTask, 'task' | 'outcome'>,
  priorArtifacts: Task['artifacts'],
): SendResult {
  const { status } = task;
  const threw = outcome === 'agent-threw' && status?.state === TaskState.TASK_STATE_FAILED;
  if (threw && rules.agentThrew === 'error') {
    throw new ProtocolError('agent-threw', 'The agent stopped with an error; the task has failed', {
      metadata: { taskId: task.id },
    });
  }
  const bare = outcome === 'message' && rules.reply === 'task-or-message';
  if (bare && turnIsOver(task) && status?.message) return { $case: 'message', value: status.message };
  return { $case: 'task', value: task, priorArtifacts };
}
