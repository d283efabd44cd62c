import { assertWritable, canSee, ProtocolError, type Reacher, visibleTasks } from '@baton/a2a';
import { type Actor, type DeadPush, type DeadPushPage, DeadPushStore } from '@baton/database';
import { Messaging } from '@baton/messaging';
import { Inject, Injectable } from '@nestjs/common';
import { type OfTenant, TenantSettings } from './tenant-settings.js';

/** Push configs that were given up: list them, and have them delivered again. */
@Injectable()
export class DeadPushes {
  constructor(
    private readonly store: DeadPushStore,
    private readonly settings: TenantSettings,
    @Inject(Messaging) private readonly messaging: Pick<Messaging, 'enqueuePushes'>,
  ) {}

  /** One page of those that the caller sees, the latest first. */
  async list(
    caller: Reacher & { tenantId: string },
    page: Pick<DeadPushPage, 'limit' | 'after'>,
  ): Promise<DeadPush[]> {
    const { tenantId, agents } = caller;
    return this.store.list(tenantId, { ...page, own: visibleTasks(caller), agentIds: agents?.ids });
  }

  /**
   * Have the dead configs of a task delivered again, from where they have stopped.
   * @param configId unset = all of the task
   * @returns the ids of those that were dead
   * @throws ProtocolError `task-not-found`, `forbidden` for a task that the caller may only see
   */
  async redeliver(
    caller: Reacher & { tenantId: string },
    taskId: string,
    configId: string | undefined,
    by: Actor,
  ): Promise<string[]> {
    const { tenantId } = caller;
    const task = await this.store.findTask(tenantId, taskId);
    if (!task || !canSee(caller, task)) throw new ProtocolError('task-not-found', 'there is no such task');
    assertWritable(caller, task.owner);
    return this.revive({ tenantId, taskId }, configId, by);
  }

  /** One page of one tenant or of all, for operators. @throws ProtocolError `not-found` */
  async listOf(
    tenant: string | undefined,
    page: Pick<DeadPushPage, 'limit' | 'after'>,
  ): Promise<OfTenant<DeadPush>[]> {
    if (tenant === undefined) return this.settings.named(await this.store.listAll(page));
    const { id, slug } = await this.settings.find(tenant);
    return (await this.store.list(id, page)).map((push) => ({ ...push, tenant: slug }));
  }

  /** The same for an operator, who names only the task. @throws ProtocolError `not-found` */
  async redeliverAnywhere(taskId: string, configId: string | undefined, by: Actor): Promise<string[]> {
    const tenantId = await this.store.findTenant(taskId);
    if (tenantId !== undefined) return this.revive({ tenantId, taskId }, configId, by);
    throw new ProtocolError('not-found', 'This task has no push config that was given up');
  }

  private async revive(
    task: { tenantId: string; taskId: string },
    configId: string | undefined,
    by: Actor,
  ): Promise<string[]> {
    const revived = await this.store.redeliver(task, configId, by);
    // If the queue is away, the sweep finds what is due.
    if (revived.length > 0) await this.messaging.enqueuePushes([task]).catch(() => undefined);
    return revived;
  }
}
