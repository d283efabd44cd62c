import { isUuid } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { Database, type Statement, type Values } from '../connection/database.js';
import { deleteEvents } from '../log/delete-events.js';
import type { DeletedRows, Retention, Tombstone } from '../tasks/task-records.js';
import { groupUsageCte } from '../tenants/usage-sql.js';
import { GONE_USAGE_CTES, LOCK_ROLLUP } from '../usage/usage-hours.store.js';
import { TERMINAL_STATES } from '../tasks/task-row.js';

// These statements never wait for the lock of a row: they skip locked rows. They hold locks only for a short time, because batches
// are small.

interface TombstoneRow {
  agent_id: string;
  owner: string | null;
  ended_at: Date;
  deleted_at: Date;
  retention_days: number;
}

/** Deletes operations on many tasks that ended long ago: $1 limit */
const DROP_BULK: Statement = {
  text: `
WITH old AS (
  SELECT tenant_id, id FROM bulk_operations
  WHERE finished_at < now() - interval '30 days' LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM bulk_operations b USING old o WHERE b.tenant_id = o.tenant_id AND b.id = o.id
  RETURNING 1
)
SELECT count(*)::int AS "bulkOperations" FROM gone`,
};

/** Deletes kept code of agents if no live worker has it and no open task began with it: $1 limit */
const DROP_ARCHIVES: Statement = {
  text: `
WITH old AS (
  SELECT slug, code FROM agent_archives a
  WHERE used_at < now() - interval '30 days'
    AND NOT EXISTS (SELECT FROM workers w WHERE w.agent_codes->>a.slug = a.code)
    AND NOT EXISTS (
      SELECT FROM runs r JOIN tasks t ON t.tenant_id = r.tenant_id AND t.id = r.task_id
      WHERE r.agent_code = a.code AND t.state NOT IN (${TERMINAL_STATES})
    )
  LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM agent_archives a USING old o WHERE a.slug = o.slug AND a.code = o.code
  RETURNING 1
)
SELECT count(*)::int AS "agentArchives" FROM gone`,
};

/** Held by the transaction of the one process that deletes. */
const TRY_LOCK: Statement = {
  text: `SELECT pg_try_advisory_xact_lock(hashtext('baton retention')) AS held`,
};
const KEEP_LOCK: Statement = { text: 'SELECT 1' };

/** SQL that makes tombstones of the tasks that a query selects: tenant, id, and the days of retention for the tombstone. */
const toTombstones = (expired: string): string => `
WITH expired AS (${expired}), gone AS (
  DELETE FROM tasks t USING expired e WHERE t.tenant_id = e.tenant_id AND t.id = e.id
  RETURNING t.tenant_id, t.id, t.agent_id, t.owner, t.status_at, e.days, t.last_sequence,
    t.stored_bytes, t.state, t.created_at, t.metadata, t.context_key
), ${GONE_USAGE_CTES}, ${groupUsageCte('-', 'stored_bytes', 'gone')}, tombstone AS (
  INSERT INTO task_tombstones (tenant_id, task_id, agent_id, owner, ended_at, retention_days, last_sequence)
  SELECT tenant_id, id, agent_id, owner, status_at, days, last_sequence FROM gone
), letter AS (
  DELETE FROM dead_letters d USING gone g WHERE d.tenant_id = g.tenant_id AND d.task_id = g.id
), push AS (
  DELETE FROM push_configs p USING gone g WHERE p.tenant_id = g.tenant_id AND p.task_id = g.id
), state AS (
  DELETE FROM context_state s USING (SELECT DISTINCT tenant_id, context_key FROM gone) g
  WHERE s.tenant_id = g.tenant_id AND s.context_key = g.context_key AND NOT EXISTS (
    SELECT FROM tasks t WHERE t.tenant_id = s.tenant_id AND t.context_key = s.context_key AND t.agent_id = s.agent_id
      AND coalesce(t.owner, '') = s.owner AND t.id NOT IN (SELECT id FROM gone)
  )
)
SELECT count(*)::int AS tasks FROM gone`;

/** Tasks that ended too long ago become tombstones: $1 tenants $2 days of each $3 limit */
const EXPIRE: Statement = {
  text: toTombstones(`
  SELECT t.tenant_id, t.id, r.days
  FROM unnest($1::uuid[], $2::float8[]) AS r(tenant_id, days),
    unnest(ARRAY[${TERMINAL_STATES}]::smallint[]) AS s(state),
    LATERAL (
      SELECT tenant_id, id FROM tasks
      WHERE tenant_id = r.tenant_id AND state = s.state AND active_run_id IS NULL
        AND status_at < now() - r.days * interval '1 day'
      ORDER BY status_at, id LIMIT $3 FOR UPDATE SKIP LOCKED
    ) t
  LIMIT $3`),
};

/**
 * Makes a tombstone of a task that has ended, also before the end of its retention. What it selects needs no lock: a task that has ended
 * never gets a run again. Processes of release 0.2.0 show its 0 days as they are. $1 tenant $2 task
 */
const DELETE_TASK: Statement = {
  text: toTombstones(`
  SELECT tenant_id, id, 0::float8 AS days FROM tasks
  WHERE tenant_id = $1 AND id = $2 AND state IN (${TERMINAL_STATES}) AND active_run_id IS NULL`),
};

/**
 * Deletes the next events of the logs of deleted tasks, from the beginning of each log. With the last event it deletes
 * the task's runs. The first run and the later ones have an index each (`isRunOf`), and one condition for both would use
 * neither. A tombstone stores the position, so deleted rows are not searched again. $1 limit of events
 */
const PURGE: Statement = {
  text: `
WITH waiting AS (
  SELECT tenant_id, task_id, purged_to, last_sequence FROM task_tombstones
  WHERE purged_to < last_sequence
  ORDER BY deleted_at LIMIT least($1::int, 200) FOR UPDATE SKIP LOCKED
), queued AS (
  SELECT *, coalesce(sum(last_sequence - purged_to) OVER (
    ORDER BY tenant_id, task_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS ahead
  FROM waiting
), slice AS MATERIALIZED (
  SELECT tenant_id, task_id, purged_to AS after, last_sequence,
    least(last_sequence, purged_to + $1::int - ahead)::int AS upto
  FROM queued WHERE ahead < $1::int
), event AS (
  ${deleteEvents('slice s')}
), message AS (
  DELETE FROM task_messages m USING slice s
  WHERE m.tenant_id = s.tenant_id AND m.task_id = s.task_id AND m.sequence > s.after AND m.sequence <= s.upto
  RETURNING 1
), run AS (
  DELETE FROM runs r USING slice s
  WHERE s.upto = s.last_sequence AND r.tenant_id = s.tenant_id AND r.id = s.task_id
  RETURNING 1
), later_run AS (
  DELETE FROM runs r USING slice s
  WHERE s.upto = s.last_sequence AND r.tenant_id = s.tenant_id AND r.task_id = s.task_id AND r.id <> r.task_id
  RETURNING 1
), journal AS (
  DELETE FROM turn_journal j USING slice s
  WHERE s.upto = s.last_sequence AND j.tenant_id = s.tenant_id AND j.task_id = s.task_id
), line AS (
  DELETE FROM console_lines l USING slice s
  WHERE s.upto = s.last_sequence AND l.tenant_id = s.tenant_id AND l.task_id = s.task_id
), record AS (
  DELETE FROM call_records c USING slice s
  WHERE s.upto = s.last_sequence AND c.tenant_id = s.tenant_id AND c.task_id = s.task_id
), start AS (
  DELETE FROM artifact_starts a USING slice s
  WHERE s.upto = s.last_sequence AND a.tenant_id = s.tenant_id AND a.task_id = s.task_id
), tombstone AS (
  UPDATE task_tombstones t SET purged_to = s.upto
  FROM slice s WHERE t.tenant_id = s.tenant_id AND t.task_id = s.task_id
)
SELECT (SELECT coalesce(sum(upto - after), 0) FROM slice)::int AS events, (SELECT count(*) FROM message)::int AS messages,
  ((SELECT count(*) FROM run) + (SELECT count(*) FROM later_run))::int AS runs`,
};

/** Tombstones that have stood long enough, with the aliases that still name them: $1 days $2 limit */
const FORGET: Statement = {
  text: `
WITH old AS (
  SELECT tenant_id, task_id FROM task_tombstones
  WHERE deleted_at < now() - $1::float8 * interval '1 day' AND purged_to >= last_sequence
  ORDER BY deleted_at LIMIT $2 FOR UPDATE SKIP LOCKED
), alias AS (
  DELETE FROM task_aliases a USING old o WHERE a.tenant_id = o.tenant_id AND a.task_id = o.task_id
  RETURNING 1
), gone AS (
  DELETE FROM task_tombstones t USING old o WHERE t.tenant_id = o.tenant_id AND t.task_id = o.task_id
  RETURNING 1
)
SELECT (SELECT count(*) FROM gone)::int AS tombstones, (SELECT count(*) FROM alias)::int AS aliases`,
};

/** Deletes expired keys of messages: $1 limit */
const DROP_KEYS: Statement = {
  text: `
WITH expired AS (
  SELECT tenant_id, key FROM message_keys
  WHERE expires_at < now() ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM message_keys k USING expired e WHERE k.tenant_id = e.tenant_id AND k.key = e.key
  RETURNING 1
)
SELECT count(*)::int AS keys FROM gone`,
};

/** Deletes receivers without a delivery for 30 days: $1 limit */
const DROP_RECEIVERS: Statement = {
  text: `
WITH old AS (
  SELECT tenant_id, host FROM push_receivers
  WHERE greatest(next_at, answered_at) < now() - interval '30 days' LIMIT $1 FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM push_receivers r USING old o WHERE r.tenant_id = o.tenant_id AND r.host = o.host
  RETURNING 1
)
SELECT count(*)::int AS receivers FROM gone`,
};

/**
 * Deletes old records of model calls, and takes their bytes from their tasks and tenants. Those of a run that has not ended stay until it
 * ends, because their bytes are not added up yet: $1 days $2 limit
 */
const DROP_RECORDS: Statement = {
  text: `
WITH old AS (
  SELECT c.tenant_id, c.task_id, c.position FROM call_records c
  JOIN tasks t ON t.tenant_id = c.tenant_id AND t.id = c.task_id AND t.active_run_id IS NULL
  WHERE c.created_at < now() - $1::float8 * interval '1 day'
  ORDER BY c.created_at LIMIT $2 FOR UPDATE SKIP LOCKED
), gone AS (
  DELETE FROM call_records c USING old o
  WHERE c.tenant_id = o.tenant_id AND c.task_id = o.task_id AND c.position = o.position
  RETURNING c.tenant_id, c.task_id, c.bytes
), task AS (
  UPDATE tasks t SET stored_bytes = t.stored_bytes - g.bytes
  FROM (SELECT tenant_id, task_id, sum(bytes) AS bytes FROM gone GROUP BY tenant_id, task_id) g
  WHERE t.tenant_id = g.tenant_id AND t.id = g.task_id
  RETURNING t.tenant_id, t.id, g.bytes
), ${groupUsageCte('-', 'bytes', 'task')}
SELECT count(*)::int AS "callRecords" FROM gone`,
};

/** The function has the rights of the owner of the table. The role of Baton may not delete records. $1 days $2 limit */
const DROP_AUDIT: Statement = {
  text: 'SELECT delete_old_audit_records($1::float8, $2::int) AS "auditRecords"',
};

/** $1 tenant $2 task */
const FIND_TOMBSTONE: Statement = {
  name: 'tombstone-find',
  text: `
SELECT agent_id, owner, ended_at, deleted_at, retention_days FROM task_tombstones
WHERE tenant_id = $1 AND task_id = $2`,
};

/** Deletes ended tasks whose retention is over, and keeps tombstones of them. */
@Injectable()
export class RetentionStore {
  constructor(private readonly database: Database) {}

  /**
   * Do `work` under a lock of all processes. A transaction without a snapshot holds the lock, so it does not block vacuum. The lock
   * ends with the connection of this process.
   * @param work calls `assertLocked` between its steps, which rejects when the lock is lost
   * @returns whether `work` was done. False: another process has the lock
   */
  async withLock(work: (assertLocked: () => Promise<void>) => Promise<void>): Promise<boolean> {
    return this.database.inSystem(async (transaction) => {
      const [lock] = await transaction.query<{ held: boolean }>(TRY_LOCK, []);
      if (!lock?.held) return false;
      await work(async () => {
        await transaction.query(KEEP_LOCK, []);
      });
      return true;
    });
  }

  /**
   * Make tombstones of at most `limit` tasks that are past their retention, oldest first. From then on no caller sees
   * them. `purge` deletes their logs. A task that has not ended is never touched.
   */
  async expire(retentions: readonly Retention[], limit: number): Promise<DeletedRows> {
    const tenants = retentions.map(({ tenantId }) => tenantId);
    const days = retentions.map((retention) => retention.days);
    const [, [row] = []] = await this.database.systemQueries([
      [LOCK_ROLLUP, []],
      [EXPIRE, [tenants, days, limit]],
    ]);
    return (row as DeletedRows | undefined) ?? {};
  }

  /**
   * Makes a tombstone of a task that has ended, also before the end of its retention. From then on no caller sees it.
   * @returns whether this call has done it: it may have been deleted before, or has not ended
   */
  async deleteTask(tenantId: string, taskId: string): Promise<boolean> {
    const [, [row] = []] = await this.database.systemQueries([
      [LOCK_ROLLUP, []],
      [DELETE_TASK, [tenantId, taskId]],
    ]);
    return (row as DeletedRows | undefined)?.tasks === 1;
  }

  /** Delete at most `limit` operations on many tasks that ended long ago. */
  async dropBulk(limit: number): Promise<DeletedRows> {
    return this.deleted(DROP_BULK, [limit]);
  }

  /** Delete at most `limit` versions of agents' code that no task has used for long. */
  async dropArchives(limit: number): Promise<DeletedRows> {
    return this.deleted(DROP_ARCHIVES, [limit]);
  }

  /** Delete at most `limit` events of the logs whose tasks are gone, with their messages and runs. */
  async purge(limit: number): Promise<DeletedRows> {
    return this.deleted(PURGE, [limit]);
  }

  /** Delete at most `limit` tombstones that are older than that many days, with the ids callers gave the tasks. */
  async forget(days: number, limit: number): Promise<DeletedRows> {
    return this.deleted(FORGET, [days, limit]);
  }

  /** Delete at most `limit` keys of messages that have expired. */
  async dropKeys(limit: number): Promise<DeletedRows> {
    return this.deleted(DROP_KEYS, [limit]);
  }

  /** Delete at most `limit` receivers of push notifications that were tried or confirmed long ago. The next delivery tries them again. */
  async dropReceivers(limit: number): Promise<DeletedRows> {
    return this.deleted(DROP_RECEIVERS, [limit]);
  }

  /** Delete at most `limit` records of model calls that are older than that many days. Those of runs that have not ended stay. */
  async dropCallRecords(days: number, limit: number): Promise<DeletedRows> {
    return this.deleted(DROP_RECORDS, [days, limit]);
  }

  /** Delete at most `limit` records of the audit log that are older than that many days, and than one day. */
  async dropAudit(days: number, limit: number): Promise<DeletedRows> {
    return this.deleted(DROP_AUDIT, [days, limit]);
  }

  /** The tombstone of a deleted task. Undefined: there is none for this tenant. */
  async findTombstone(tenantId: string, taskId: string): Promise<Tombstone | undefined> {
    if (!isUuid(taskId)) return undefined;
    const [row] = await this.database.tenantQuery<TombstoneRow>(tenantId, FIND_TOMBSTONE, [tenantId, taskId]);
    return (
      row && {
        agentId: row.agent_id,
        owner: row.owner,
        endedAt: row.ended_at,
        deletedAt: row.deleted_at,
        retentionDays: row.retention_days,
      }
    );
  }

  private async deleted(statement: Statement, values: Values): Promise<DeletedRows> {
    const [row] = await this.database.systemQuery<DeletedRows & QueryResultRow>(statement, values);
    return row ?? {};
  }
}
