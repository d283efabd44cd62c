import { Injectable } from '@nestjs/common';
import { Database, tenantLock } from '../connection/database.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import type { FullCap } from './cap-records.js';
import { capCtes, countCtes, FULL_CAPS, fullCapCtes } from './cap-sql.js';

/** What a task costs besides the calls of models that Baton makes. */
export interface SpendingCharge {
  tenantId: string;
  runId: string;
  taskId: string;
  /** `task`: its price. `reported`: what its agent says that it has cost so far. */
  kind: 'task' | 'reported';
  /** Of the whole task, so far. What was charged of it before counts once. */
  micros: number;
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

/** What tasks cost besides calls of models that Baton makes, for tenants with spending caps. */
@Injectable()
export class SpendingChargeStore {
  constructor(private readonly database: Database) {}

  /** Charge what was not charged yet. @returns the caps that have no room, because of which nothing is charged */
  async charge(charge: SpendingCharge): Promise<FullCap[]> {
    const [, rows] = await this.database.tenantQueries(charge.tenantId, [
      [LOCK, [charge.tenantId]],
      [CHARGE, CHARGE.values({ charge })],
    ]);
    const [answer] = (rows ?? []) as { caps: FullCap[] }[];
    return answer?.caps ?? [];
  }
}
