import { serializePayload } from '@baton/a2a';
import { type CancelResult, type CanceledTask, FamilyStore, TaskStore } from '@baton/database';
import { Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { Suspensions } from './suspensions.js';

/** Cancels tasks, and with each of them the children that its agent has made. */
@Injectable()
export class TaskCanceler {
  constructor(
    private readonly tasks: TaskStore,
    private readonly families: FamilyStore,
    private readonly messaging: Messaging,
    private readonly dispatcher: RunDispatcher,
    private readonly suspensions: Suspensions,
    private readonly logger: Logger,
  ) {}

  /**
   * One guarded statement makes the task `canceled`; only then is the runtime told to stop, wherever it runs. If
   * that message is lost, the worker's next heartbeat finds out. Its children follow; should this process die
   * before they are canceled, the sweep finds them.
   * @param agentId null = whichever agent the task belongs to
   * @param options.metadata keys merged into the task's metadata
   */
  async cancel(
    tenantId: string,
    agentId: string | null,
    taskId: string,
    options: { metadata?: object | undefined } = {},
  ): Promise<CancelResult> {
    const { metadata } = options;
    const result = await this.tasks.cancel(tenantId, agentId, taskId, metadata ? { metadata } : {});
    if (result.ok) await this.tell(tenantId, taskId, result);
    return result;
  }

  /** Cancel what is left of the children of a task that has ended. Never rejects: the sweep does it then. */
  async cancelChildren(tenantId: string, taskId: string): Promise<void> {
    try {
      const open = await this.families.openChildren(tenantId, taskId);
      await Promise.all(open.map(async (child) => this.cancel(tenantId, null, child)));
    } catch (error) {
      this.logger.warn('children not canceled; the sweep will do it', { err: error, tenantId, taskId });
    }
  }

  private async tell(tenantId: string, taskId: string, canceled: CanceledTask): Promise<void> {
    const { event, runId, parentTaskId, hasChildren } = canceled;
    if (runId) this.dispatcher.ended(tenantId);
    const json = serializePayload(event.payload);
    const published = { sequence: event.sequence, attempt: 0, json };
    await Promise.all([
      this.messaging.publishTask(tenantId, taskId, { lastSequence: event.sequence, events: [published] }),
      runId && this.messaging.publishControl({ type: 'run-canceled', tenantId, taskId, runId }),
      hasChildren && this.cancelChildren(tenantId, taskId),
      parentTaskId && this.suspensions.wake(tenantId, parentTaskId),
    ]);
  }
}
