import { Injectable } from '@nestjs/common';
import { Database, type Statement } from '../connection/database.js';
import { tenantLock } from '../connection/tenant-lock.js';

/** After this silence a process counts as dead, and its streams do not count. */
const ALIVE = `interval '15 seconds'`;
/** Age at which the rows of dead processes are deleted. */
const FORGOTTEN = `interval '1 minute'`;

/** The request of one process for more streams of a tenant. */
export interface StreamClaim {
  tenantId: string;
  processId: string;
  /** Streams it has open. */
  held: number;
  /** Number of further streams that it requests. */
  wanted: number;
  /** Streams that the tenant may have open, over all processes. */
  max: number;
}

// One claim of a tenant at a time, so that each sees what the one before it got.
const LOCK = tenantLock('streams');

/** $1 tenant $2 process $3 held $4 wanted $5 maximum */
const CLAIM: Statement = {
  name: 'streams-claim',
  text: `
INSERT INTO stream_counts (tenant_id, process_id, streams, seen_at)
SELECT $1, $2, GREATEST($3::int, LEAST($3::int + $4::int, $5::bigint - others.streams))::int, clock_timestamp()
FROM (
  SELECT COALESCE(sum(streams), 0) AS streams FROM stream_counts
  WHERE tenant_id = $1 AND process_id <> $2 AND seen_at > clock_timestamp() - ${ALIVE}
) AS others
ON CONFLICT (tenant_id, process_id) DO UPDATE SET streams = excluded.streams, seen_at = excluded.seen_at
RETURNING streams`,
};

/** $1 tenant $2 process $3 streams */
const REPORT: Statement = {
  name: 'streams-report',
  text: `
INSERT INTO stream_counts (tenant_id, process_id, streams, seen_at) VALUES ($1, $2, $3, clock_timestamp())
ON CONFLICT (tenant_id, process_id) DO UPDATE SET streams = excluded.streams, seen_at = excluded.seen_at`,
};

/** $1 tenant $2 process */
const REMOVE: Statement = {
  name: 'streams-remove',
  text: 'DELETE FROM stream_counts WHERE tenant_id = $1 AND process_id = $2',
};

/** $1 process */
const TOUCH: Statement = {
  name: 'streams-touch',
  text: `
UPDATE stream_counts SET seen_at = clock_timestamp() WHERE process_id = $1
RETURNING tenant_id, streams`,
};

const FORGET: Statement = {
  name: 'streams-forget',
  text: `
DELETE FROM stream_counts WHERE (tenant_id, process_id) IN (
  SELECT tenant_id, process_id FROM stream_counts WHERE seen_at < clock_timestamp() - ${FORGOTTEN}
  LIMIT 100 FOR UPDATE SKIP LOCKED
)`,
};

/** The number of open streams of each API process, for tenants with a limit. */
@Injectable()
export class StreamCountStore {
  constructor(private readonly database: Database) {}

  /**
   * Store the open streams of a process, and as many of the wanted ones as the limit allows. @returns how many it got
   */
  async claim({ tenantId, processId, held, wanted, max }: StreamClaim): Promise<number> {
    const [, rows] = await this.database.tenantQueries(tenantId, [
      [LOCK, [tenantId]],
      [CLAIM, [tenantId, processId, held, wanted, max]],
    ]);
    const [row] = rows as { streams: number }[];
    return (row?.streams ?? held) - held;
  }

  /** Store the number of streams of a process, whatever the limit. */
  async report(tenantId: string, processId: string, streams: number): Promise<void> {
    if (streams === 0) await this.database.tenantQuery(tenantId, REMOVE, [tenantId, processId]);
    else await this.database.tenantQuery(tenantId, REPORT, [tenantId, processId, streams]);
  }

  /** Heartbeat of the process. Deletes the rows of processes without one for a minute. @returns its rows, by tenant */
  async touch(processId: string): Promise<Map<string, number>> {
    const rows = await this.database.systemQuery<{ tenant_id: string; streams: number }>(TOUCH, [processId]);
    await this.database.systemQuery(FORGET, []);
    return new Map(rows.map(({ tenant_id, streams }) => [tenant_id, streams]));
  }
}
