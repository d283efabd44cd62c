import { Injectable } from '@nestjs/common';
import { Database, type Statement, type Values } from '../connection/database.js';
import { tenantLock } from '../connection/tenant-lock.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { RECORD_COST } from './usage-hours.store.js';
import type { FullCap } from '../spending/cap-records.js';
import { capCtes, countCtes, FULL_CAPS, fullCapCtes } from '../spending/cap-sql.js';

/** What a task costs besides the model calls that Baton makes. */
export interface SpendingCharge {
  tenantId: string;
  runId: string;
  taskId: string;
  /** `task`: its price. `reported`: the cost so far that its agent reports. */
  kind: 'task' | 'reported';
  /** The charge of the whole task, so far. Earlier charges are a part of it. */
  micros: number;
  /** The part of the charge that no other figure of the usage has. */
  usageMicros: number;
  /** The tenant has spending caps. */
  isCapped: boolean;
}

// The lock of reservations: each sees the charges before it.
const LOCK = tenantLock('tokens');

const CHARGED = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  run_id: ['uuid', ({ runId }) => runId],
  task_id: ['uuid', ({ taskId }) => taskId],
  kind: ['text', ({ kind }) => kind],
  micros: ['bigint', ({ micros }) => micros],
} satisfies Inputs<SpendingCharge>;

const DELTA = '(SELECT micros FROM delta)';

/** Charges what was not charged yet. A price needs room in each cap; what is reported was spent already. One row. */
const CHARGE = statement(
  'spending-charge',
  { charge: one(CHARGED) },
  ({ charge }) => `
WITH RECURSIVE ${capCtes(charge.tenant_id, charge.run_id, 'FOR KEY SHARE OF c')}, delta AS (
  SELECT greatest(${charge.micros} - coalesce((
    SELECT micros FROM spending_charges WHERE tenant_id = ${charge.tenant_id} AND task_id = ${charge.task_id} AND kind = ${charge.kind}
  ), 0), 0) AS micros
), ${fullCapCtes(charge.tenant_id, charge.run_id, DELTA)}, charged AS (
  INSERT INTO spending_charges AS c (tenant_id, task_id, kind, micros)
  SELECT ${charge.tenant_id}, ${charge.task_id}, ${charge.kind}, ${charge.micros} FROM delta
  WHERE micros > 0 AND (${charge.kind} = 'reported' OR NOT EXISTS (SELECT FROM full_caps))
  ON CONFLICT (tenant_id, task_id, kind) DO UPDATE SET micros = excluded.micros, updated_at = now()
  RETURNING 1
), ${countCtes(DELTA, 'EXISTS (SELECT FROM charged)')}
SELECT CASE WHEN EXISTS (SELECT FROM charged) THEN '[]' ELSE ${FULL_CAPS} END AS caps`,
);

/** What tasks cost besides model calls that Baton makes: for spending caps and for the usage. */
@Injectable()
export class SpendingChargeStore {
  constructor(private readonly database: Database) {}

  /**
   * Charge what was not charged yet. A price is in the usage unless a cap has no room for it.
   * @returns the caps without room. If there are any, nothing is charged
   */
  async charge(charge: SpendingCharge): Promise<FullCap[]> {
    const { tenantId, taskId, kind, usageMicros, isCapped } = charge;
    const count = RECORD_COST[kind];
    const counting: [Statement, Values] = [
      count,
      count.values({ cost: { tenantId, taskId, micros: usageMicros } }),
    ];
    if (!isCapped) {
      await this.database.tenantQueries(tenantId, [counting]);
      return [];
    }
    return this.database.inTenant(tenantId, async (transaction) => {
      await transaction.query(LOCK, [tenantId]);
      const [answer] = await transaction.query<{ caps: FullCap[] }>(CHARGE, CHARGE.values({ charge }));
      const { caps = [] } = answer ?? {};
      if (caps.length === 0 && usageMicros > 0) await transaction.query(...counting);
      return caps;
    });
  }
}
