import type { EndedNext } from '@baton/a2a';
import { clock } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { Database, type Statement } from '../connection/database.js';

/** How far back runs count. */
const WINDOW_HOURS = 24;
/** Runs of a tenant that count: the newest. */
const MAX_RUNS = 5_000;
/** `next` ends if its share of failed runs is higher than that of the stable version by this much. */
const MORE_FAILURES = 0.1;

/** A version with the label `next` whose runs fail too often. */
export interface FailingNext {
  tenantId: string;
  agentId: string;
  slug: string;
  /** Since when it has the label. */
  since: Date;
  ended: EndedNext;
}

/**
 * Runs that have ended since a version has the label, of both labels. A canceled run does not count. The index of the runs with a
 * label finds them. A run of `next` that ran another version, because its own was no longer there, counts for neither.
 */
const FIND_FAILING: Statement = {
  text: `
SELECT * FROM (
  SELECT a.tenant_id::text AS "tenantId", a.id::text AS "agentId", a.slug, a.next_version AS version, a.next_share AS share,
    a.next_since AS since, a.next_failures AS failures, c.*
  FROM agents a CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE label = 'next')::int AS runs, count(*) FILTER (WHERE label = 'stable')::int AS "stableRuns",
      count(*) FILTER (WHERE label = 'next' AND state = 'failed')::int AS failed,
      count(*) FILTER (WHERE label = 'stable' AND state = 'failed')::int AS "stableFailed"
    FROM (
      SELECT r.agent_label AS label, r.state, r.agent_version, t.agent_id
      FROM runs r JOIN tasks t ON t.tenant_id = r.tenant_id AND t.id = r.task_id
      WHERE r.tenant_id = a.tenant_id AND r.agent_label IS NOT NULL
        AND r.created_at >= greatest(a.next_since, now() - interval '${WINDOW_HOURS} hours')
      ORDER BY r.created_at DESC LIMIT ${MAX_RUNS}
    ) r
    WHERE r.agent_id = a.id::text AND r.state IN ('succeeded', 'failed') AND (label = 'stable' OR agent_version = a.next_version)
  ) c
  WHERE a.next_version IS NOT NULL AND a.next_share > 0 AND a.deleted_at IS NULL
) f
WHERE failed >= failures
  AND failed::float8 / runs >= ${MORE_FAILURES} + "stableFailed"::float8 / greatest("stableRuns", 1)`,
};

type FailingNextRow = Omit<FailingNext, 'ended'> & Omit<EndedNext, 'at'>;

/** Versions with the label `next` that fail. */
@Injectable()
export class FailingNextStore {
  constructor(private readonly database: Database) {}

  /** Finds the versions with the label `next` that fail too often, of all tenants. */
  async find(): Promise<FailingNext[]> {
    const rows = await this.database.systemQuery<FailingNextRow>(FIND_FAILING, []);
    const at = clock.date().toISOString();
    return rows.map(
      ({ tenantId, agentId, slug, since, version, share, runs, failed, stableRuns, stableFailed }) => ({
        tenantId,
        agentId,
        slug,
        since,
        ended: { version, share, at, runs, failed, stableRuns, stableFailed },
      }),
    );
  }
}
