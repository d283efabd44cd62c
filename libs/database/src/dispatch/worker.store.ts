import { Injectable } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { Database, type Statement } from '../connection/database.js';
import { hasEnded } from '../connection/session-name.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { WAITING } from './run-conditions.js';

/** A worker process as it presents itself. */
export interface WorkerProcess {
  id: string;
  host: string;
  pid: number;
  /** Runs at a time. */
  concurrency: number;
  /** How many of them it keeps free for tenants without a run in flight. */
  reservedSlots?: number;
  /** Release of Baton. */
  version?: string;
  /** Resident memory of the process. */
  memoryBytes?: number;
  /** Session of its leases (`sessionName`). */
  session?: string | undefined;
}

/** The answer to a heartbeat: facts about this worker and the others. */
interface Heartbeat {
  worker: WorkerProcess;
  /** Maximum age of the last heartbeat of a worker that can be the oldest, in milliseconds. Its session has not ended either. */
  punctualMs: number;
  /** Maximum age of the last heartbeat of a worker whose slots count, in milliseconds. */
  liveMs: number;
}

const HEARTBEAT = {
  id: ['text', ({ worker }) => worker.id],
  host: ['text', ({ worker }) => worker.host],
  pid: ['int', ({ worker }) => worker.pid],
  concurrency: ['int', ({ worker }) => worker.concurrency],
  version: ['text', ({ worker }) => worker.version],
  memory_bytes: ['bigint', ({ worker }) => worker.memoryBytes],
  reserved_slots: ['int', ({ worker }) => worker.reservedSlots],
  session: ['text', ({ worker }) => worker.session],
  punctual_ms: ['int', ({ punctualMs }) => punctualMs],
  live_ms: ['int', ({ liveMs }) => liveMs],
} satisfies Inputs<Heartbeat>;

const SEEN = statement(
  'worker-vitals-3',
  { self: one(HEARTBEAT) },
  ({ self }) => `
WITH self AS (
  INSERT INTO workers (id, host, pid, concurrency, version, memory_bytes, reserved_slots, session)
  VALUES (${self.id}, ${self.host}, ${self.pid}, ${self.concurrency}, ${self.version}, ${self.memory_bytes}, ${self.reserved_slots},
    ${self.session})
  ON CONFLICT (id) DO UPDATE SET seen_at = clock_timestamp(), version = excluded.version,
    memory_bytes = excluded.memory_bytes, reserved_slots = excluded.reserved_slots, session = excluded.session
  RETURNING id, started_at
)
SELECT count(*) FILTER (WHERE is_elder AND is_punctual) = 0 AS is_eldest, coalesce(sum(concurrency), 0)::int AS "others",
  coalesce(sum(concurrency) FILTER (WHERE is_elder), 0)::int AS "elders"
FROM (
  SELECT w.concurrency, (w.started_at, w.id) < (self.started_at, self.id) AS is_elder,
    w.seen_at > clock_timestamp() - ${self.punctual_ms} * interval '1 millisecond' AND NOT ${hasEnded('w.session')} AS is_punctual
  FROM workers w, self WHERE w.id <> self.id AND w.seen_at > clock_timestamp() - ${self.live_ms} * interval '1 millisecond'
) live`,
);

interface RankRow {
  is_eldest: boolean;
  others: number;
  elders: number;
}

/** The rank of a worker by age among the live workers. */
export interface WorkerRank {
  /** No live worker is older. */
  isEldest: boolean;
  /** Slots of the other live workers, and of the older ones. */
  otherSlots: number;
  elderSlots: number;
}

/** An agent of the operator that a worker could not load. */
export interface StoredLoadFailure {
  /** Null: the directory of agents cannot be read. */
  slug: string | null;
  /** Relative to the directory of agents. */
  file: string;
  line: number | null;
  reason: string;
  /** Slugs or ids of the tenants that may read it; null = all, empty = operators alone. */
  tenants: string[] | null;
}

/** Failures that are kept per worker. Each list of workers reads them. */
const MAX_FAILURES = 100;
/** Characters of the text of one. */
const MAX_TEXT = 1000;

/** $1 id $2 host $3 pid $4 concurrency $5 failures */
const REPORT: Statement = {
  text: `
INSERT INTO workers (id, host, pid, concurrency, load_failures) VALUES ($1, $2, $3, $4, $5::jsonb)
ON CONFLICT (id) DO UPDATE SET load_failures = excluded.load_failures`,
};

/** $1 id $2 host $3 pid $4 concurrency $5 codes by agent */
const REPORT_CODES: Statement = {
  text: `
INSERT INTO workers (id, host, pid, concurrency, agent_codes) VALUES ($1, $2, $3, $4, $5::jsonb)
ON CONFLICT (id) DO UPDATE SET agent_codes = workers.agent_codes || excluded.agent_codes`,
};

/** $1 how old the last heartbeat of a live worker may be, in ms $2 tenant $3 how many */
const FAILURES: Statement = {
  text: `
SELECT f.slug, f.file, f.line, f.reason, f.tenants
FROM workers w, jsonb_to_recordset(w.load_failures) AS f(slug text, file text, line int, reason text, tenants text[])
WHERE w.seen_at > clock_timestamp() - $1::int * interval '1 millisecond'
  AND (f.tenants IS NULL OR f.tenants && ARRAY[$2::text, (SELECT slug FROM tenants WHERE id = $2::text::uuid)])
GROUP BY f.slug, f.file, f.line, f.reason, f.tenants
ORDER BY f.slug, f.file, f.line, f.reason LIMIT $3`,
};

/** $1 id */
const REMOVE: Statement = { name: 'worker-remove', text: 'DELETE FROM workers WHERE id = $1' };

const FORGET: Statement = {
  name: 'worker-forget',
  text: `DELETE FROM workers WHERE seen_at < now() - interval '1 hour'`,
};

/**
 * $1 how old the last heartbeat of a live worker may be, in ms. The index finds each tenant's oldest waiting run. Only
 * few runs are on the queue.
 */
const LOAD: Statement = {
  text: `
WITH RECURSIVE waiting AS (
  (SELECT tenant_id, created_at FROM runs WHERE ${WAITING} ORDER BY tenant_id, created_at, id LIMIT 1)
  UNION ALL
  SELECT next.tenant_id, next.created_at FROM waiting w, LATERAL (
    SELECT tenant_id, created_at FROM runs WHERE ${WAITING} AND tenant_id > w.tenant_id
    ORDER BY tenant_id, created_at, id LIMIT 1
  ) next
)
SELECT
  (SELECT count(*)::int FROM workers
   WHERE seen_at > clock_timestamp() - $1::int * interval '1 millisecond') AS live,
  greatest(0, extract(epoch FROM clock_timestamp() - least(
    (SELECT min(created_at) FROM waiting),
    (SELECT min(created_at) FROM runs WHERE state = 'queued' AND enqueued_at IS NOT NULL)
  )))::float8 AS oldest`,
};

/** The state of waiting work and of the workers. */
export interface WorkerLoad {
  /** Workers with a recent heartbeat. */
  liveWorkers: number;
  /** Age of the oldest accepted run that no worker has yet, in seconds; 0 = there is none. */
  oldestWaitingSeconds: number;
}

/** $1 how old the last heartbeat of a live worker may be, in ms */
const LIST: Statement = {
  text: `
SELECT id, host, pid, concurrency, started_at AS "startedAt", seen_at AS "seenAt", load_failures AS "loadFailures",
  version, memory_bytes::float8 AS "memoryBytes",
  seen_at > clock_timestamp() - $1::int * interval '1 millisecond' AS "isAlive",
  (SELECT count(*)::int FROM runs WHERE state = 'running' AND worker_id = w.id) AS running
FROM workers w ORDER BY started_at, id`,
};

/** A row of `workers`. */
export interface KnownWorker extends Omit<WorkerProcess, 'version' | 'memoryBytes'> {
  /** Release of Baton. Null: an earlier release does not report it. */
  version: string | null;
  /** Resident memory of the process at its last heartbeat. Null: an earlier release does not report it. */
  memoryBytes: number | null;
  /** Whether its last heartbeat is recent. */
  isAlive: boolean;
  startedAt: Date;
  /** Last heartbeat. A worker that died is forgotten after an hour. */
  seenAt: Date;
  /** Runs that it executes. */
  running: number;
  /** Agents in code that it could not load when it started. */
  loadFailures: StoredLoadFailure[];
}

/** The live workers and their slots. */
@Injectable()
export class WorkerStore {
  constructor(private readonly database: Database) {}

  /**
   * Stores the heartbeat of a worker.
   * @param punctualMs how old the last heartbeat of another worker may be for it to be the eldest, in ms
   * @param liveMs the same for a worker whose slots count
   * @returns its place among the live workers
   */
  async seen(worker: WorkerProcess, punctualMs: number, liveMs = punctualMs): Promise<WorkerRank> {
    const values = SEEN.values({ self: { worker, punctualMs, liveMs } });
    const [row] = await this.database.systemQuery<RankRow>(SEEN, values);
    return {
      isEldest: row?.is_eldest === true,
      otherSlots: row?.others ?? 0,
      elderSlots: row?.elders ?? 0,
    };
  }

  /** Called at boot. The load failures of a worker stay stored until it ends. */
  async reportFailures(worker: WorkerProcess, failures: readonly StoredLoadFailure[]): Promise<void> {
    const kept = failures.slice(0, MAX_FAILURES).map((failure) => ({
      ...failure,
      file: textOf(failure.file),
      reason: textOf(failure.reason),
    }));
    const { id, host, pid, concurrency } = worker;
    await this.database.systemQuery(REPORT, [id, host, pid, concurrency, JSON.stringify(kept)]);
  }

  /** Called at boot, and when code was loaded again. @param codes hashes of the code of agents, by slug */
  async reportCodes(
    { id, host, pid, concurrency }: WorkerProcess,
    codes: Readonly<Record<string, string>>,
  ): Promise<void> {
    await this.database.systemQuery(REPORT_CODES, [id, host, pid, concurrency, JSON.stringify(codes)]);
  }

  /**
   * The agents in code that live workers could not load and the tenant may read, each once.
   * @param liveMs how old the last heartbeat of a live worker may be, in ms
   */
  async loadFailures(tenantId: string, liveMs: number): Promise<StoredLoadFailure[]> {
    return this.database.systemQuery<StoredLoadFailure & QueryResultRow>(FAILURES, [
      liveMs,
      tenantId,
      MAX_FAILURES,
    ]);
  }

  /** The worker takes no more runs. */
  async remove(id: string): Promise<void> {
    await this.database.systemQuery(REMOVE, [id]);
  }

  /** @param liveMs how old the last heartbeat of a live worker may be, in ms */
  async load(liveMs: number): Promise<WorkerLoad> {
    const [row] = await this.database.systemQuery<{ live: number; oldest: number | null }>(LOAD, [liveMs]);
    return { liveWorkers: row?.live ?? 0, oldestWaitingSeconds: row?.oldest ?? 0 };
  }

  /**
   * Workers with a heartbeat in the last hour, the oldest first.
   * @param liveMs how old the last heartbeat of a live worker may be, in ms
   */
  async list(liveMs: number): Promise<KnownWorker[]> {
    return this.database.systemQuery<KnownWorker & QueryResultRow>(LIST, [liveMs]);
  }

  /** Forget the workers that died long ago. */
  async forgetDead(): Promise<void> {
    await this.database.systemQuery(FORGET, []);
  }
}

/** Postgres stores neither U+0000 nor half of a surrogate pair, which the cut may leave. */
const textOf = (text: string): string => Buffer.from(text.replaceAll('\0', '').slice(0, MAX_TEXT)).toString();
