import { Tracing } from '@baton/telemetry';
import { type Agent, type AgentLabel, agentOfNewTask, ProtocolError, runRetry } from '@baton/a2a';
import { Environment } from '@baton/config';
import {
  ApproverError,
  type EarlierTurn,
  type NewTask,
  type NextTurn,
  type NextTurnResult,
  type RunQuota,
  StorageFullError,
  TaskStore,
  TooManyWaitingError,
} from '@baton/database';
import type { RunJob } from '@baton/messaging';
import { Inject, Injectable } from '@nestjs/common';
import { v7 as uuid } from 'uuid';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { EagerStart } from '../eager-start/eager-start.js';
import { mayStartEagerly } from '../eager-start/may-start-eagerly.js';

/** `Retry-After` when too many tasks of the tenant wait. */
const RETRY_SECONDS = 1;
/** `Retry-After` when the storage is full: retention deletes tasks from time to time. */
const FULL_RETRY_SECONDS = 60;

/** A new task of an agent. With `ensureTask`, every caller computes the same id. */
export type TaskRequest = Pick<
  NewTask,
  | 'tenantId'
  | 'owner'
  | 'task'
  | 'details'
  | 'traceparent'
  | 'alias'
  | 'key'
  | 'child'
  | 'push'
  | 'copiedBytes'
> & {
  agent: Agent;
  extensions?: readonly string[];
  isGuest?: boolean;
  /** The task begins with the version that has this label. The share of `next` does not decide. It counts as a task of that version. */
  label?: AgentLabel;
  /** The task begins with the stable version of its agent. The share of `next` does not decide. */
  isStable?: boolean;
};

/** The next message of an interrupted task. */
export type NextTurnRequest = Pick<
  NextTurn,
  | 'tenantId'
  | 'message'
  | 'details'
  | 'traceparent'
  | 'key'
  | 'sender'
  | 'record'
  | 'approvingToken'
  | 'approvingIssuer'
  | 'push'
> & {
  agent: Agent;
  /** Unset: the task belongs to `agent`. */
  agentId?: string;
  extensions?: readonly string[];
  isGuest?: boolean;
  /** The tenant's limits of waiting tasks and stored bytes do not apply. */
  isUnlimited?: boolean;
};

/** Result for a new task: it was created, or an earlier one has its key or its alias. */
export type CreatedTurn<T> = { opened: T } & ({ created: true } | { created: false; earlier: EarlierTurn });

/** Result for a next turn. */
export type ContinuedTurn<T> = { ok: true; opened: T } | Exclude<NextTurnResult, { ok: true }>;

/** The part of the dispatcher that a new turn needs. */
type TurnDispatcher = Pick<RunDispatcher, 'quotaFor' | 'enqueue'>;

/**
 * Every task and every turn begins here. One transaction writes task, message, run and event. Then the run is
 * enqueued. The queued row is the outbox: if the queue is away, the sweeper enqueues the run later (invariant 1). While a worker has
 * free slots, the run starts eagerly instead (`EagerStart`).
 */
@Injectable()
export class TurnAcceptance {
  constructor(
    private readonly tasks: TaskStore,
    @Inject(RunDispatcher) private readonly slots: TurnDispatcher,
    @Inject(EagerStart) private readonly eager: Pick<EagerStart, 'claimFor' | 'send'>,
    @Inject(Environment) private readonly environment: Pick<Environment, 'maxAttempts'>,
    private readonly tracing: Tracing,
  ) {}

  /**
   * Make a task, unless there is one under its key or its alias.
   * @param open called beside the transaction; the run starts after it is done
   * @throws ProtocolError `limit-exceeded` if the tenant's quota has no room; nothing was written then
   * @throws ParentOverError, TooManyChildrenError if it may not be a child; nothing was written then
   */
  async createTask<T = undefined>(
    request: TaskRequest,
    open: () => Promise<T> = nothing,
  ): Promise<CreatedTurn<T>> {
    const { agent: called, extensions = [], isGuest, isStable = false, label, ...input } = request;
    const { tenantId, task } = input;
    const agent = isStable ? called : agentOfNewTask(called, task.id, label);
    // The first run has the id of its task, so that no index must say whose it is (`isRunOf`).
    const run: RunJob = { tenantId, taskId: task.id, runId: task.id, attempt: 0 };
    const quota = await this.slots.quotaFor(tenantId, isGuest);
    const retry = this.retryOf(agent);
    const claimFor = mayStartEagerly(request, retry) ? this.eager.claimFor() : undefined;
    const creating = this.stored(input, () =>
      this.tasks.create({
        ...input,
        agentId: agent.id,
        // Only then it is decided now. Else the worker runs, and notes, what is newest when it begins.
        ...(agent.label && { begins: { label: agent.label, version: agent.version } }),
        runId: run.runId,
        extensions,
        retry,
        claimFor,
        quota,
      }),
    );
    const [opened, { created, dispatched, claimed, mayUseReserved, ...earlier }] = await Promise.all([
      open(),
      creating,
    ]).catch(explainQuota(quota));
    if (!created) return { opened, created, earlier };
    const made = { ...run, mayUseReserved };
    if (claimed !== undefined && claimFor) await this.eager.send(made, claimFor, claimed);
    else await this.slots.enqueue(made, dispatched);
    return { opened, created };
  }

  /**
   * Create the task with that id, unless it exists. Another process may create it at the same time.
   * @returns whether this call has made it
   * @throws as `createTask` does, if it is not there
   */
  async ensureTask(request: TaskRequest): Promise<boolean> {
    try {
      return (await this.createTask(request)).created;
    } catch (error) {
      if (await this.exists(request.tenantId, request.task.id)) return false;
      throw error;
    }
  }

  /** Whether the tenant has a task of that id. */
  async exists(tenantId: string, taskId: string): Promise<boolean> {
    return (await this.tasks.get(tenantId, taskId, { historyLength: 0, artifacts: false })) !== undefined;
  }

  /**
   * Give a message to the task that it names (`message.taskId`), as its next turn.
   * @param open called after the commit with the sequence of the turn's event; the run is enqueued after it
   * @returns why not, if the task takes no message now; nothing was written then
   * @throws ProtocolError `limit-exceeded` if the tenant's quota has no room, `forbidden` if the token that approves may no
   * longer do so; nothing was written then
   */
  async continueTask<T = undefined>(
    request: NextTurnRequest,
    open: (sequence: number) => Promise<T> = nothing,
  ): Promise<ContinuedTurn<T>> {
    const { agent, agentId = agent.id, extensions = [], isGuest, isUnlimited = false, ...input } = request;
    const { tenantId, message } = input;
    const { taskId } = message;
    const runId = uuid();
    const limits = await this.slots.quotaFor(tenantId, isGuest);
    const quota = isUnlimited ? { ...limits, maxWaiting: null, maxStoredBytes: null } : limits;
    const continued = await this.stored(input, () =>
      this.tasks.continue({
        ...input,
        agentId,
        taskId,
        runId,
        extensions,
        retry: this.retryOf(agent),
        quota,
      }),
    ).catch(explainQuota(quota));
    if (!continued.ok) return continued;
    const opened = await open(continued.sequence);
    const { dispatched, mayUseReserved } = continued;
    await this.slots.enqueue({ tenantId, taskId, runId, attempt: 0, mayUseReserved }, dispatched);
    return { ok: true, opened };
  }

  /** One transaction, as a span of the trace of its call. */
  private stored<T>({ traceparent }: Pick<NewTask, 'traceparent'>, write: () => Promise<T>): Promise<T> {
    return this.tracing.during('store turn', traceparent, write, { kind: 'client' });
  }

  private retryOf({ definition }: Agent) {
    return runRetry(definition.retry, this.environment.maxAttempts);
  }
}

const nothing = async <T>(): Promise<T> => undefined as T;

/** The error for a caller whose turn is refused as it is written. */
const explainQuota =
  ({ maxWaiting, maxStoredBytes }: RunQuota) =>
  (error: unknown): never => {
    if (error instanceof TooManyWaitingError && maxWaiting !== null) {
      throw ProtocolError.limitExceeded(
        'tasksWaiting',
        maxWaiting,
        RETRY_SECONDS,
        'send it again when fewer tasks wait for their run, or ask the operator for more',
      );
    }
    if (error instanceof StorageFullError && maxStoredBytes != null) {
      throw ProtocolError.limitExceeded(
        'storedBytes',
        maxStoredBytes,
        FULL_RETRY_SECONDS,
        'wait until old tasks are deleted, or ask the operator for more, or for a shorter retention',
      );
    }
    if (error instanceof ApproverError) {
      throw new ProtocolError(
        'forbidden',
        'the token has lost the right to approve: approve with another token',
      );
    }
    throw error;
  };
