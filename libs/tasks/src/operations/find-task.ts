import { type CallContext, ProtocolError } from '@baton/a2a';
import { type StoredTask, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';

/** Finds the task that an id means for a caller. */
@Injectable()
export class TaskFinder {
  constructor(private readonly tasks: TaskStore) {}

  /** The server's id behind an id that the caller may have chosen itself. */
  async idOf(call: CallContext, id: string): Promise<string> {
    const { tenantId, profile, rules, agent } = call;
    if (!rules.clientTaskIds) return id;
    const agentId = rules.taskScope === 'tenant' ? undefined : agent.id;
    const alias = await this.tasks.findAlias({ tenantId, agentId, profile, clientId: id });
    return alias?.taskId ?? id;
  }

  /**
   * The task, within what the caller may look at: its tenant, and the agent it calls unless its profile looks
   * at the whole tenant. Anything else is not found, as if it did not exist.
   */
  async find(
    call: CallContext,
    id: string,
    options: { historyLength?: number; artifacts?: boolean } = {},
  ): Promise<StoredTask> {
    const stored = await this.tasks.get(call.tenantId, await this.idOf(call, id), options);
    const inScope = call.rules.taskScope === 'tenant' || stored?.agentId === call.agent.id;
    if (!stored || !inScope) throw ProtocolError.taskNotFound(id);
    return stored;
  }
}
