import { Injectable } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { Database, type Statement } from '../connection/database.js';

/**
 * Why a run is where it is: `waiting` for a dispatch slot, in `backoff` after a crash, `queued` for a worker, `running`, or
 * `suspended` until other tasks, a time or a person.
 */
export const RUN_CLASSES = ['waiting', 'backoff', 'queued', 'running', 'suspended'] as const;
export type RunClass = (typeof RUN_CLASSES)[number];

/** The runs of one class, of all tenants. */
export interface RunsOfClass {
  class: RunClass;
  runs: number;
  /** When the oldest of them was accepted. Null: there is none. */
  oldestAt: Date | null;
  /** For how long that was ago, in seconds, by the clock of Postgres. */
  oldestSeconds: number;
}

/** The accepted run that has waited longest for a worker. */
export interface WaitingRun {
  /** Slug of the tenant. */
  tenant: string;
  taskId: string;
  acceptedAt: Date;
}

/** The work of all tenants at one moment. It names tasks, and has nothing of what is in them. */
export interface QueueState {
  /** All classes, in the order of `RUN_CLASSES`. */
  classes: RunsOfClass[];
  oldestWaiting: WaitingRun | null;
  /** Runs that used up their attempts and were not sent again. */
  deadLetters: number;
  /** Push configs that were given up. */
  deadPushes: number;
  /** Runs that the live workers can execute at once. */
  slots: number;
}

// The statements have no name: they are planned for the tables as they are.

const CLASSES: Statement = {
  text: `
SELECT class, count(*)::int AS runs, min(created_at) AS "oldestAt",
  greatest(0, extract(epoch FROM clock_timestamp() - min(created_at)))::float8 AS "oldestSeconds"
FROM (
  SELECT CASE WHEN enqueued_at IS NOT NULL THEN 'queued'
    WHEN not_before > clock_timestamp() THEN 'backoff' ELSE 'waiting' END AS class, created_at
  FROM runs WHERE state = 'queued'
  UNION ALL
  SELECT state, created_at FROM runs WHERE state = 'running'
  UNION ALL
  SELECT state, created_at FROM runs WHERE state = 'suspended'
) r GROUP BY class`,
};

const OLDEST: Statement = {
  text: `
SELECT t.slug AS tenant, r.task_id AS "taskId", r.created_at AS "acceptedAt"
FROM runs r JOIN tenants t ON t.id = r.tenant_id
WHERE r.state = 'queued' ORDER BY r.created_at LIMIT 1`,
};

/** $1 how long ago a live worker may have given a sign of life, in ms */
const REST: Statement = {
  text: `
SELECT (SELECT count(*)::int FROM dead_letters WHERE redelivered_at IS NULL) AS "deadLetters",
  (SELECT count(*)::int FROM push_configs WHERE state = 'dead') AS "deadPushes",
  (SELECT coalesce(sum(concurrency), 0)::int FROM workers
   WHERE seen_at > clock_timestamp() - $1::int * interval '1 millisecond') AS slots`,
};

type Rest = Pick<QueueState, 'deadLetters' | 'deadPushes' | 'slots'>;

/** How much work there is, and how long it waits. */
@Injectable()
export class QueueStore {
  constructor(private readonly database: Database) {}

  /** @param liveMs how long ago a live worker may have given its last sign of life */
  async read(liveMs: number): Promise<QueueState> {
    const [classes = [], [oldest] = [], [rest] = []] = (await this.database.systemQueries([
      [CLASSES, []],
      [OLDEST, []],
      [REST, [liveMs]],
    ])) as [RunsOfClass[], WaitingRun[], Rest[]] & QueryResultRow[][];
    const none = { runs: 0, oldestAt: null, oldestSeconds: 0 };
    return {
      classes: RUN_CLASSES.map(
        (name) => classes.find((each) => each.class === name) ?? { class: name, ...none },
      ),
      oldestWaiting: oldest ?? null,
      ...{ deadLetters: rest?.deadLetters ?? 0, deadPushes: rest?.deadPushes ?? 0, slots: rest?.slots ?? 0 },
    };
  }
}
