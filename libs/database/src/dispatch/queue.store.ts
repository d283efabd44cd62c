import { Injectable } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { Database, type Statement } from '../connection/database.js';
import { WAITING } from './run-conditions.js';

/**
 * Why a run is where it is: `waiting` for a dispatch slot, in `backoff` after a crash, `queued` for a worker, `running`, or
 * `suspended` until other tasks, a time or a person.
 */
export const RUN_CLASSES = ['waiting', 'backoff', 'queued', 'running', 'suspended'] as const;
export type RunClass = (typeof RUN_CLASSES)[number];

/** Maximum that is counted of each class, so that an answer costs the same when a million runs wait. */
export const MAX_COUNTED = 10_000;
/** Tenants whose oldest waiting runs are looked up. */
const MAX_TENANTS = 10_000;

/** The runs of one class, of all tenants. */
export interface RunsOfClass {
  class: RunClass;
  /** At most `MAX_COUNTED`. */
  runs: number;
  /** Whether there may be more than that. */
  more: boolean;
  /** When the oldest of them was accepted. Null: there is none. */
  oldestAt: Date | null;
  /** Seconds since then, by the clock of Postgres. */
  oldestSeconds: number;
}

/** The accepted run that has waited longest for a worker. */
export interface WaitingRun {
  /** Slug of the tenant. */
  tenant: string;
  taskId: string;
  acceptedAt: Date;
}

/** The work of all tenants at one moment. It has ids of tasks, and none of their contents. */
export interface QueueState {
  /** All classes, in the order of `RUN_CLASSES`. */
  classes: RunsOfClass[];
  oldestWaiting: WaitingRun | null;
  /** Runs that used up their attempts and were not sent again, counted up to `MAX_COUNTED`. */
  deadLetters: number;
  /** Push configs that were given up, counted up to `MAX_COUNTED`. */
  deadPushes: number;
  /** Runs that the live workers can execute at once. */
  slots: number;
}

// The statements have no name: they are planned for the tables as they are.

/** A waiting run is in backoff as long as it is not due. */
const CLASS_OF_WAITING = `CASE WHEN not_before > clock_timestamp() THEN 'backoff' ELSE 'waiting' END`;
const COLUMNS = 'tenant_id, task_id, created_at';
const countableRuns = (runClass: string, condition: string): string =>
  `(SELECT ${runClass} AS class, ${COLUMNS} FROM runs WHERE ${condition} LIMIT ${MAX_COUNTED + 1})`;

/**
 * Some runs of each class, and besides the oldest waiting run of each tenant: `is_head`. The index of waiting runs leads from
 * tenant to tenant, however many runs wait.
 */
const SEEN = `RECURSIVE heads AS (
  (SELECT ${CLASS_OF_WAITING} AS class, ${COLUMNS}, 1 AS n FROM runs WHERE ${WAITING}
   ORDER BY tenant_id, created_at, id LIMIT 1)
  UNION ALL
  SELECT next.*, h.n + 1 FROM heads h, LATERAL (
    SELECT ${CLASS_OF_WAITING}, ${COLUMNS} FROM runs WHERE ${WAITING} AND tenant_id > h.tenant_id
    ORDER BY tenant_id, created_at, id LIMIT 1
  ) next WHERE h.n < ${MAX_TENANTS}
), seen AS MATERIALIZED (
  SELECT class, ${COLUMNS}, true AS is_head FROM heads
  UNION ALL
  SELECT class, ${COLUMNS}, false FROM (
    ${countableRuns(CLASS_OF_WAITING, WAITING)}
    UNION ALL
    ${countableRuns(`'queued'`, `state = 'queued' AND enqueued_at IS NOT NULL`)}
    UNION ALL
    ${countableRuns(`'running'`, `state = 'running'`)}
    UNION ALL
    ${countableRuns(`'suspended'`, `state = 'suspended'`)}
  ) counted
)`;

/** The classes that have runs, and the oldest run that no worker has yet. */
export const READ_QUEUE: Statement = {
  text: `
WITH ${SEEN}
SELECT
  (SELECT json_agg(c) FROM (
     SELECT class, count(*) FILTER (WHERE NOT is_head)::int AS runs, min(created_at) AS "oldestAt",
       greatest(0, extract(epoch FROM clock_timestamp() - min(created_at)))::float8 AS "oldestSeconds"
     FROM seen GROUP BY class) c) AS classes,
  (SELECT json_build_object('tenant', t.slug, 'taskId', s.task_id, 'acceptedAt', s.created_at)
   FROM seen s JOIN tenants t ON t.id = s.tenant_id
   WHERE s.class IN ('waiting', 'backoff', 'queued') ORDER BY s.created_at LIMIT 1) AS oldest`,
};

const countUpToMax = (rows: string): string =>
  `(SELECT count(*)::int FROM (SELECT FROM ${rows} LIMIT ${MAX_COUNTED}) n)`;

/** $1 how old the last heartbeat of a live worker may be, in ms */
const REST: Statement = {
  text: `
SELECT ${countUpToMax('dead_letters WHERE redelivered_at IS NULL')} AS "deadLetters",
  ${countUpToMax(`push_configs WHERE state = 'dead'`)} AS "deadPushes",
  (SELECT coalesce(sum(concurrency), 0)::int FROM workers
   WHERE seen_at > clock_timestamp() - $1::int * interval '1 millisecond') AS slots`,
};

/** Times are texts in JSON. */
interface QueueRow {
  classes: { class: RunClass; runs: number; oldestAt: string; oldestSeconds: number }[] | null;
  oldest: { tenant: string; taskId: string; acceptedAt: string } | null;
}

type Rest = Pick<QueueState, 'deadLetters' | 'deadPushes' | 'slots'>;

/** How much work there is, and how long it waits. */
@Injectable()
export class QueueStore {
  constructor(private readonly database: Database) {}

  /** @param liveMs how old the last heartbeat of a live worker may be, in ms */
  async read(liveMs: number): Promise<QueueState> {
    const [[row] = [], [rest] = []] = (await this.database.systemQueries([
      [READ_QUEUE, []],
      [REST, [liveMs]],
    ])) as [QueueRow[], Rest[]] & QueryResultRow[][];
    const found = new Map((row?.classes ?? []).map((each) => [each.class, each]));
    const counted = (...classes: RunClass[]): number =>
      classes.reduce((sum, name) => sum + (found.get(name)?.runs ?? 0), 0);
    return {
      classes: RUN_CLASSES.map((name) => {
        const { runs = 0, oldestAt = null, oldestSeconds = 0 } = found.get(name) ?? {};
        // These two are counted together: whether a run backs off is in no index.
        const isWaiting = name === 'waiting' || name === 'backoff';
        const more = (isWaiting ? counted('waiting', 'backoff') : runs) > MAX_COUNTED;
        const oldest = { oldestAt: oldestAt === null ? null : new Date(oldestAt), oldestSeconds };
        return { class: name, runs: Math.min(runs, MAX_COUNTED), more, ...oldest };
      }),
      oldestWaiting: row?.oldest ? { ...row.oldest, acceptedAt: new Date(row.oldest.acceptedAt) } : null,
      deadLetters: rest?.deadLetters ?? 0,
      deadPushes: rest?.deadPushes ?? 0,
      slots: rest?.slots ?? 0,
    };
  }
}
