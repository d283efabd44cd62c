import { Injectable } from '@nestjs/common';
import { Database } from '../connection/database.js';
import * as sql from './task-tree-sql.js';
import type { Ancestor, Family, RunKey } from '../tasks/records.js';
import { isUuid } from '../connection/uuid.js';

const NONE = '00000000-0000-0000-0000-000000000000';

/** Where a sweep over all tenants goes on; undefined: at the beginning. */
export type SweepCursor = { tenantId: string; id: string } | undefined;

/** Tasks that are children of others, and runs that wait for them. */
@Injectable()
export class FamilyStore {
  constructor(private readonly database: Database) {}

  /** The task itself, then its parent, and so on up to the first one. Empty: there is no such task. */
  async line(tenantId: string, taskId: string): Promise<Ancestor[]> {
    const rows = await this.database.tenantQuery<sql.AncestorRow>(tenantId, sql.LINE, [tenantId, taskId]);
    return rows.map((row) => ({ taskId: row.id, agentId: row.agent_id }));
  }

  /** Parent and children of a task, and the version of its agent. */
  async find(tenantId: string, taskId: string): Promise<Family> {
    const values = [tenantId, taskId];
    const [row] = isUuid(taskId)
      ? await this.database.tenantQuery<sql.FamilyRow>(tenantId, sql.FAMILY, values)
      : [];
    const { parent_task_id: parentTaskId = null, children: childTaskIds = [] } = row ?? {};
    return { parentTaskId, childTaskIds, agentVersion: row?.agent_version ?? null };
  }

  /** The children of a task that have not ended, those included that wait for input. */
  async openChildren(tenantId: string, taskId: string): Promise<string[]> {
    const values = [tenantId, taskId];
    const rows = await this.database.tenantQuery<{ id: string }>(tenantId, sql.OPEN_CHILDREN, values);
    return rows.map(({ id }) => id);
  }

  /**
   * Let a run wait until none of these tasks has a turn that is queued or under way. It keeps its task and gives up
   * worker, lease and slot. Who suspends must call `wake` afterwards: a task may have ended just before.
   * @returns false if this attempt no longer owns the run
   */
  async suspend({ tenantId, taskId, runId, attempt }: RunKey, waitsFor: readonly string[]): Promise<boolean> {
    const values = [tenantId, taskId, runId, attempt, waitsFor];
    return (await this.database.tenantQuery(tenantId, sql.SUSPEND, values)).length > 0;
  }

  /**
   * Queue the suspended run of a task again if nothing is left to wait for; its next claim is another attempt.
   * @returns whether it was; it waits for a slot then
   */
  async wake(tenantId: string, taskId: string): Promise<boolean> {
    return (await this.database.tenantQuery(tenantId, sql.WAKE, [tenantId, taskId])).length > 0;
  }

  /** The same for the next suspended runs of all tenants, for what was not woken by those it waited for. */
  async wakeNext(after: SweepCursor, limit: number): Promise<{ woken: number; next: SweepCursor }> {
    const values = [after?.tenantId ?? NONE, after?.id ?? NONE, limit];
    const [row] = await this.database.systemQuery<sql.WokenRow>(sql.WAKE_NEXT, values);
    const { looked = 0, woken = 0, tenant_id: tenantId, id } = row ?? {};
    return { woken, next: looked === limit && tenantId && id ? { tenantId, id } : undefined };
  }

  /** Of the next children of all tenants that have not ended, those whose parent has. */
  async orphans(
    after: SweepCursor,
    limit: number,
  ): Promise<{ orphans: { tenantId: string; taskId: string }[]; next: SweepCursor }> {
    const values = [after?.tenantId ?? NONE, after?.id ?? NONE, limit];
    const rows = await this.database.systemQuery<sql.OpenChildRow>(sql.OPEN_NEXT, values);
    const last = rows.at(-1);
    return {
      orphans: rows
        .filter(({ orphan }) => orphan)
        .map((row) => ({ tenantId: row.tenant_id, taskId: row.id })),
      next: rows.length === limit && last ? { tenantId: last.tenant_id, id: last.id } : undefined,
    };
  }
}
