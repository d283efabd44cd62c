import { Injectable } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { Database, type Statement } from '../connection/database.js';
import { nextTryAt } from '../sql/notice-tries.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { takeInTurns } from '../sql/take-in-turns.js';
import type { SpendingCap } from './cap-records.js';

/** 80 % of a cap are used. */
export interface SpendingWarning {
  tenantId: string;
  cap: SpendingCap;
  /** Who has used them: the subject of the count. */
  usedBy: string;
  periodStart: string;
  usedMicros: number;
  warnedAt: Date;
  /** The webhooks that have it. */
  notified: string[];
}

/** Takes due warnings. If this worker dies or a receiver does not answer, they are due again later. $1 limit */
const CLAIM: Statement = {
  name: 'spending-warnings-claim-2',
  text: `
WITH due AS MATERIALIZED (
${takeInTurns({
  table: 'spending_counts',
  alias: 's',
  columns: 'tenant_id, cap_id, subject, period_start',
  isDue: 'notice_at <= statement_timestamp()',
  since: 'notice_at',
  limit: '$1',
})}
)
UPDATE spending_counts n SET notice_tries = n.notice_tries + 1,
  notice_at = ${nextTryAt('n.notice_tries')}
FROM due d JOIN spending_caps c ON c.tenant_id = d.tenant_id AND c.id = d.cap_id
WHERE n.tenant_id = d.tenant_id AND n.cap_id = d.cap_id AND n.subject = d.subject AND n.period_start = d.period_start
RETURNING n.tenant_id::text AS "tenantId", n.subject AS "usedBy", n.period_start::text AS "periodStart", n.micros::float8 AS "usedMicros",
  n.warned_at AS "warnedAt", n.notified::text[] AS notified, json_build_object('id', c.id, 'kind', c.kind, 'subject', c.subject,
    'name', c.name, 'period', c.period, 'micros', c.micros, 'onLimit', c.on_limit, 'setBy', c.set_by) AS cap`,
};

interface ToldWebhooks {
  warning: Pick<SpendingWarning, 'tenantId' | 'cap' | 'usedBy' | 'periodStart'>;
  webhooks: readonly string[];
  isDone: boolean;
}

const NOTICE = {
  tenant_id: ['uuid', ({ warning }) => warning.tenantId],
  cap_id: ['uuid', ({ warning }) => warning.cap.id],
  subject: ['text', ({ warning }) => warning.usedBy],
  period_start: ['date', ({ warning }) => warning.periodStart],
  webhooks: ['uuid[]', ({ webhooks }) => webhooks],
  is_done: ['boolean', ({ isDone }) => isDone],
} satisfies Inputs<ToldWebhooks>;

const NOTE = statement(
  'spending-warning-note',
  { notice: one(NOTICE) },
  ({ notice }) => `
UPDATE spending_counts SET notified = ${notice.webhooks}, notice_at = CASE WHEN ${notice.is_done} THEN NULL ELSE notice_at END
WHERE tenant_id = ${notice.tenant_id} AND cap_id = ${notice.cap_id} AND subject = ${notice.subject} AND period_start = ${notice.period_start}`,
);

/** Notices about caps that are nearly used. `TokenUsageStore` finds them when it counts a call. */
@Injectable()
export class SpendingWarningStore {
  constructor(private readonly database: Database) {}

  /** Takes due warnings, of all tenants. They are due again later unless `note` marks them as done. */
  async claim(limit: number): Promise<SpendingWarning[]> {
    return this.database.systemQuery<SpendingWarning & QueryResultRow>(CLAIM, [limit]);
  }

  /** @param webhooks all that have it @param isDone none is left */
  async note(warning: SpendingWarning, webhooks: readonly string[], isDone: boolean): Promise<void> {
    const values = NOTE.values({ notice: { warning, webhooks, isDone } });
    await this.database.tenantQuery(warning.tenantId, NOTE, values);
  }
}
