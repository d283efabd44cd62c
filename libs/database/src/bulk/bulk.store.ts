import { clock } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { v7 as uuid } from 'uuid';
import { type Actor } from '../audit/audit-records.js';
import { CatalogClient } from '../connection/catalog-client.js';
import { Database, type Statement } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import type { BulkOperation as BulkRow, Prisma } from '../generated/client.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import type { PageAfter } from '../tenants/tenant-records.js';
import type { BulkOperation, BulkProgress, BulkState, ClaimedBulk } from './bulk-records.js';

/** Operations of a tenant that may be under way. */
export const MAX_RUNNING = 20;

const COLUMNS = `o.tenant_id AS "tenantId", o.id, o.action, o.filter, o.caller, o.actor, o.state, o.cursor, o.is_listed AS "isListed",
  o.pending, o.found, o.done, o.skipped, o.failed, o.failures, o.waits_for AS "waitsFor", o.claim, o.created_at AS "createdAt",
  o.finished_at AS "finishedAt"`;

/**
 * A worker claims the oldest operation of a tenant, so that a tenant has one at a time: $1 limit $2 ms until another may claim it.
 * Ids grow with time.
 */
const CLAIM: Statement = {
  name: 'bulk-claim',
  text: `
WITH due AS (
  SELECT tenant_id, id FROM bulk_operations o
  WHERE due_at <= now() AND NOT EXISTS (
    SELECT FROM bulk_operations earlier
    WHERE earlier.tenant_id = o.tenant_id AND earlier.id < o.id AND earlier.due_at IS NOT NULL
  )
  ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED
)
UPDATE bulk_operations o SET claim = o.claim + 1, due_at = now() + $2::int * interval '1 millisecond'
FROM due WHERE o.tenant_id = ${keyOfTenant('due.tenant_id')} AND o.id = due.id
RETURNING ${COLUMNS}`,
};

/** Progress of a claimed operation. */
interface SavedProgress extends BulkProgress {
  tenantId: string;
  id: string;
  claim: number;
  /** When the next worker may claim it, in ms from now. */
  dueInMs: number;
  isOver: boolean;
}

const SAVED = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  id: ['uuid', ({ id }) => id],
  claim: ['int', ({ claim }) => claim],
  cursor: ['json', ({ cursor }) => (cursor === null ? null : JSON.stringify(cursor))],
  is_listed: ['boolean', ({ isListed }) => isListed],
  pending: ['uuid[]', ({ pending }) => pending],
  found: ['int', ({ found }) => found],
  done: ['int', ({ done }) => done],
  skipped: ['int', ({ skipped }) => skipped],
  failed: ['int', ({ failed }) => failed],
  failures: ['json', ({ failures }) => JSON.stringify(failures)],
  waits_for: ['text', ({ waitsFor }) => waitsFor],
  due_in_ms: ['int', ({ dueInMs }) => dueInMs],
  is_over: ['boolean', ({ isOver }) => isOver],
} satisfies Inputs<SavedProgress>;

/** An operation that was canceled meanwhile stays canceled. Finished work counts. */
const SAVE = statement(
  'bulk-save',
  { saved: one(SAVED) },
  ({ saved }) => `
UPDATE bulk_operations o SET cursor = ${saved.cursor}, is_listed = ${saved.is_listed}, pending = ${saved.pending}, found = ${saved.found},
  done = ${saved.done}, skipped = ${saved.skipped}, failed = ${saved.failed}, failures = ${saved.failures}, waits_for = ${saved.waits_for},
  due_at = CASE WHEN o.state = 'running' AND NOT ${saved.is_over} THEN now() + ${saved.due_in_ms} * interval '1 millisecond' END,
  finished_at = CASE WHEN o.state = 'running' AND ${saved.is_over} THEN now() ELSE o.finished_at END,
  state = CASE WHEN o.state = 'running' AND ${saved.is_over} THEN 'done' ELSE o.state END
WHERE o.tenant_id = ${saved.tenant_id} AND o.id = ${saved.id} AND o.claim = ${saved.claim}
RETURNING o.state`,
);

/** A new operation. */
export type NewBulk = Pick<BulkOperation, 'tenantId' | 'action' | 'filter' | 'caller' | 'actor'>;

/** Operations on many tasks of a tenant. */
@Injectable()
export class BulkStore {
  constructor(
    private readonly catalog: CatalogClient,
    private readonly database: Database,
  ) {}

  /** @returns undefined if `MAX_RUNNING` operations of the tenant are under way */
  async create({ tenantId, action, filter, caller, actor }: NewBulk): Promise<BulkOperation | undefined> {
    const json = (value: object) => value as Prisma.InputJsonValue;
    return this.catalog.change(
      tenantId,
      async (prisma, record) => {
        const running = await prisma.bulkOperation.count({ where: { tenantId, state: 'running' } });
        if (running >= MAX_RUNNING) return undefined;
        const id = uuid();
        const row = await prisma.bulkOperation.create({
          data: {
            tenantId,
            id,
            action,
            filter: json(filter),
            caller: json(caller),
            actor: json(actor),
            dueAt: clock.date(),
          },
        });
        const target = { kind: 'bulk-operation', name: id } as const;
        await record({ action: 'bulk.begin', target, by: actor, detail: { action, filter } });
        return operationOf(row);
      },
      // One after the other, so that the number is exact.
      'bulk operations begin',
    );
  }

  /** The newest first. @param page.after id of the last one of the page before */
  async list(tenantId: string, { limit, after }: PageAfter): Promise<BulkOperation[]> {
    const rows = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.bulkOperation.findMany({
        where: { tenantId, ...(after !== undefined && { id: { lt: after } }) },
        orderBy: { id: 'desc' },
        take: limit,
      }),
    );
    return rows.map(operationOf);
  }

  async find(tenantId: string, id: string): Promise<BulkOperation | undefined> {
    const row = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.bulkOperation.findUnique({ where: { tenantId_id: { tenantId, id } } }),
    );
    return row ? operationOf(row) : undefined;
  }

  /** End it: no further task is changed once the worker has finished the tasks at which it works. @returns undefined if it is not running */
  async cancel(tenantId: string, id: string, by: Actor): Promise<BulkOperation | undefined> {
    return this.catalog.change(tenantId, async (prisma, record) => {
      const [row] = await prisma.bulkOperation.updateManyAndReturn({
        where: { tenantId, id, state: 'running' },
        data: { state: 'canceled', dueAt: null, finishedAt: clock.date() },
      });
      if (!row) return undefined;
      await record({ action: 'bulk.cancel', target: { kind: 'bulk-operation', name: id }, by });
      return operationOf(row);
    });
  }

  /** The operations that are due, the oldest of each tenant, for the worker that works at them. @param leaseMs until another worker may take them */
  async claimDue(limit: number, leaseMs: number): Promise<ClaimedBulk[]> {
    return this.database.systemQuery<ClaimedBulk & QueryResultRow>(CLAIM, [limit, leaseMs]);
  }

  /**
   * Store what was done of a claimed operation.
   * @param next.dueInMs when it continues
   * @param next.isOver nothing is left to do
   * @returns the state that it has now; undefined if another worker has claimed it: nothing was written then
   */
  async save(
    { tenantId, id, claim }: ClaimedBulk,
    progress: BulkProgress,
    next: { dueInMs: number; isOver: boolean },
  ): Promise<BulkState | undefined> {
    const values = SAVE.values({ saved: { ...progress, ...next, tenantId, id, claim } });
    const [row] = await this.database.tenantQuery<{ state: BulkState }>(tenantId, SAVE, values);
    return row?.state;
  }
}

const operationOf = ({ dueAt: _d, claim: _c, ...row }: BulkRow): BulkOperation =>
  row as unknown as BulkOperation;
