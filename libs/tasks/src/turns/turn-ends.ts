import { type OwnTasks, TaskState, isTerminal, serializePayload } from '@baton/a2a';
import {
  type Actor,
  type CancelResult,
  type CanceledTask,
  type ClaimedRun,
  TaskTreeStore,
  type RunKey,
  TaskStore,
  retryTransient,
} from '@baton/database';
import type { Suspension } from '@baton/agents';
import { Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { Inject, Injectable } from '@nestjs/common';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';

/** How long to retry waking a task whose caller has signed in. */
const WAKE_MS = 30_000;

/** How a turn has ended. */
export interface EndedTurn {
  state: TaskState;
  /** The task may have children. They end with it. */
  mayHaveChildren: boolean;
}

/**
 * Applies the end of a turn to other tasks: frees the slot of its run, wakes the waiting parent, and cancels the
 * children of an ended task. It also cancels tasks, and suspends runs that wait for other tasks
 * (docs/inside/adr/0007-suspended-runs.md).
 */
@Injectable()
export class TurnEnds {
  constructor(
    private readonly tasks: TaskStore,
    private readonly taskTree: TaskTreeStore,
    @Inject(Messaging)
    private readonly messaging: Pick<Messaging, 'publishTask' | 'publishControl' | 'enqueuePushes'>,
    @Inject(RunDispatcher) private readonly dispatcher: Pick<RunDispatcher, 'ended' | 'refill'>,
    private readonly logger: Logger,
  ) {}

  /**
   * A worker is done with a run. Never rejects.
   * @param ended undefined: the run is suspended, was stopped, or will be tried again
   */
  async follow(
    { tenantId, taskId, parentTaskId }: Pick<ClaimedRun, 'tenantId' | 'taskId' | 'parentTaskId'>,
    ended: EndedTurn | undefined,
  ): Promise<void> {
    this.dispatcher.ended(tenantId);
    if (!ended) return;
    const isOver = isTerminal(ended.state) && ended.mayHaveChildren;
    await Promise.all([
      ended.state === TaskState.TASK_STATE_AUTH_REQUIRED && this.wakeSignedIn(tenantId, taskId),
      isOver && this.cancelChildren(tenantId, taskId),
      parentTaskId && this.wake(tenantId, parentTaskId),
    ]);
  }

  /**
   * Cancel a task and its children. One guarded statement makes the task `canceled`. Then a control message stops the runtime,
   * wherever it runs; if that message is lost, the worker's next heartbeat notices. If this process dies before the children are
   * canceled, the sweep cancels them.
   * @param agentId null = any agent
   * @param options.metadata keys merged into the task's metadata
   * @param options.own the task must be one of these; unset = a task of any owner
   * @param options.by who cancels, for the audit log; unset = the platform does
   */
  async cancel(
    tenantId: string,
    agentId: string | null,
    taskId: string,
    options: { metadata?: object | undefined; own?: OwnTasks | undefined; by?: Actor } = {},
  ): Promise<CancelResult> {
    const result = await this.tasks.cancel(tenantId, agentId, taskId, options);
    if (result.ok) await this.publishCancel(tenantId, taskId, result);
    return result;
  }

  /**
   * Let the run wait until these tasks have ended their turns, or until a time has passed. Retried until Postgres answers or
   * `signal` aborts. A run that another attempt owns stays as it is.
   */
  async suspend(
    run: RunKey,
    { taskIds, wakeInMs }: Pick<Suspension, 'taskIds' | 'wakeInMs'>,
    signal: AbortSignal,
  ): Promise<void> {
    await retryTransient(() => this.taskTree.suspend(run, taskIds, wakeInMs), { signal });
    // Those tasks may have ended before the run was suspended. Their ends found no suspended run.
    await this.wake(run.tenantId, run.taskId);
  }

  /** Cancel the open children of a task that has ended. Never rejects: what fails is left to the sweep. */
  private async cancelChildren(tenantId: string, taskId: string): Promise<void> {
    try {
      const open = await this.taskTree.openChildren(tenantId, taskId);
      await Promise.all(open.map(async (child) => this.cancel(tenantId, null, child)));
    } catch (error) {
      this.logger.warn('children could not be canceled; the sweep will cancel them', {
        err: error,
        tenantId,
        taskId,
      });
    }
  }

  /** The caller may have signed in before the task has asked for it. Never rejects: the task continues after its time. */
  private async wakeSignedIn(tenantId: string, taskId: string): Promise<void> {
    await retryTransient(() => this.tasks.wakeSignedIn(tenantId, taskId), {
      signal: AbortSignal.timeout(WAKE_MS),
    }).catch((err: unknown) => {
      this.logger.warn('tasks could not be woken after a sign-in; they wake at their time', {
        err,
        tenantId,
        taskId,
      });
    });
  }

  /**
   * A task has ended its turn: wake the suspended run of its parent. Never rejects: what fails is left to the sweep.
   */
  private async wake(tenantId: string, parentTaskId: string): Promise<void> {
    try {
      if (await this.taskTree.wake(tenantId, parentTaskId)) this.dispatcher.refill();
    } catch (error) {
      this.logger.warn('waiting runs could not be woken; the sweep will wake them', {
        err: error,
        tenantId,
        taskId: parentTaskId,
      });
    }
  }

  private async publishCancel(tenantId: string, taskId: string, canceled: CanceledTask): Promise<void> {
    const { event, runId, parentTaskId, hasChildren, hasPushConfigs } = canceled;
    if (runId) this.dispatcher.ended(tenantId);
    const json = serializePayload(event.payload);
    const published = { sequence: event.sequence, attempt: 0, json };
    await Promise.all([
      this.messaging.publishTask(tenantId, taskId, { lastSequence: event.sequence, events: [published] }),
      runId && this.messaging.publishControl({ type: 'run-canceled', tenantId, taskId, runId }),
      hasChildren && this.cancelChildren(tenantId, taskId),
      parentTaskId && this.wake(tenantId, parentTaskId),
      // If the queue is away, the sweep finds due configs.
      hasPushConfigs && this.messaging.enqueuePushes([{ tenantId, taskId }]).catch(() => undefined),
    ]);
  }
}
