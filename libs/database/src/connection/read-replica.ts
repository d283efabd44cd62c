import type { QueryResultRow } from 'pg';
import { type Database, DATABASE_IDENTITY, type Reads, type Statement, type Values } from './database.js';
import { plainError } from './transient.js';

/** Whether the server is a standby of the database $2 that has replayed the log up to $1. */
const HAS_REPLAYED: Statement = {
  name: 'has-replayed',
  text: `SELECT pg_is_in_recovery() AND ${DATABASE_IDENTITY} = $2 AS "isStandby",
    coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, false) AS replayed`,
};

/** A replica that has failed is not asked again for so long, and one that is behind for the time that it may be behind. */
const REST_MS = 5_000;

/** The log of writes of the primary had this end at that time, or a later one. */
interface Position {
  /** On the clock of `performance.now()`. */
  at: number;
  position: string;
  /** Of the database whose log it is. */
  identity: string;
}

export interface ReplicaOptions {
  /** The primary: `Database` of the process. */
  primary: Database;
  /** The standby, with row-level security as at the primary. */
  standby: Database;
  /** Milliseconds. What was committed longer ago is in every answer. */
  maxLagMs: number;
  /** Called after each read, with the server that has answered it. */
  onRead?: (server: 'replica' | 'primary') => void;
  /** Called when the primary begins to serve because of this reason, and with nothing when the replica serves again. */
  onChange?: (reason: string | undefined) => void;
}

/**
 * Reads of one tenant from a streaming standby. Every answer has what was committed `maxLagMs` ago or earlier: the standby
 * must have replayed what the primary's log of writes had then, and says so in the transaction of the read. No clock of
 * another machine counts, and an idle primary makes no standby look old. If the standby is behind, away, or fails, the
 * primary answers.
 */
export class ReadReplica implements Reads {
  private readonly options: Required<ReplicaOptions>;
  /** Oldest first. */
  private positions: Position[] = [];
  private asking: Promise<Position> | undefined;
  private restUntil = 0;
  private reason: string | undefined;

  constructor(options: ReplicaOptions) {
    this.options = { onRead: () => undefined, onChange: () => undefined, ...options };
  }

  async tenantQuery<Row extends QueryResultRow>(
    tenantId: string,
    statement: Statement,
    values: Values,
  ): Promise<Row[]> {
    const [rows] = await this.tenantQueries(tenantId, [[statement, values]]);
    return rows as Row[];
  }

  async tenantQueries(tenantId: string, calls: readonly [Statement, Values][]): Promise<QueryResultRow[][]> {
    const { primary, onRead } = this.options;
    const rows = performance.now() < this.restUntil ? undefined : await this.fromStandby(tenantId, calls);
    onRead(rows ? 'replica' : 'primary');
    return rows ?? primary.tenantQueries(tenantId, calls);
  }

  async close(): Promise<void> {
    await this.options.standby.close();
  }

  /** The rows of each statement; undefined: the primary must be asked. */
  private async fromStandby(
    tenantId: string,
    calls: readonly [Statement, Values][],
  ): Promise<QueryResultRow[][] | undefined> {
    const { standby, maxLagMs, onChange } = this.options;
    try {
      const { position, identity } = await this.neededPosition();
      const check: [Statement, Values] = [HAS_REPLAYED, [position, identity]];
      const [[checked] = [], ...rows] = await standby.tenantQueries(tenantId, [check, ...calls]);
      if (!checked?.isStandby) {
        this.rest(REST_MS, 'DATABASE_REPLICA_URL leads to no standby of the database of DATABASE_URL');
        return undefined;
      }
      if (!checked.replayed) {
        this.rest(Math.min(maxLagMs, REST_MS), 'it is further behind than DATABASE_REPLICA_MAX_LAG_MS');
        return undefined;
      }
      if (this.reason !== undefined) {
        this.reason = undefined;
        onChange(undefined);
      }
      return rows;
    } catch (error) {
      // Whatever it is, such as a query that the standby has ended because it was in the way of the replay: the primary decides.
      const plain = plainError(error);
      this.rest(REST_MS, plain instanceof Error ? plain.message : String(plain));
      return undefined;
    }
  }

  private rest(ms: number, reason: string): void {
    this.restUntil = performance.now() + ms;
    if (this.reason === undefined) this.options.onChange(reason);
    this.reason = reason;
  }

  /** An end of the log that is not older than `maxLagMs`, the oldest one that is known: the standby has it soonest. */
  private async neededPosition(): Promise<Position> {
    const { maxLagMs } = this.options;
    const now = performance.now();
    this.positions = this.positions.filter(({ at }) => at >= now - maxLagMs);
    const [oldest] = this.positions;
    const newest = this.positions.at(-1);
    if (oldest && newest && newest.at >= now - maxLagMs / 4) return oldest;
    this.asking ??= this.ask();
    if (!oldest) return this.asking;
    this.asking.catch(() => undefined); // Whoever needs it will ask again.
    return oldest;
  }

  private async ask(): Promise<Position> {
    try {
      // Before the question: what was committed until then is in the answer.
      const at = performance.now();
      const position = { at, ...(await this.options.primary.logPosition()) };
      this.positions.push(position);
      return position;
    } finally {
      this.asking = undefined;
    }
  }
}
