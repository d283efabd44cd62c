import { SingleFlight } from '@baton/postgres';
import type { QueryResultRow } from 'pg';
import { type Database, DATABASE_IDENTITY, type Statement, type Values } from './database.js';
import type { Reads } from './reads.js';
import { plainError } from './transient.js';

/** Whether the server is a standby of the database $2 that has replayed the log up to $1, and up to $3. */
const HAS_REPLAYED: Statement = {
  name: 'has-replayed',
  text: `SELECT pg_is_in_recovery() AND ${DATABASE_IDENTITY} = $2 AS "isStandby",
    coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, false) AS replayed,
    coalesce(pg_last_wal_replay_lsn() >= $3::pg_lsn, false) AS "replayedMissed"`,
};

/** A replica that has failed is not read for this long. */
const REST_MS = 5_000;
/**
 * Number of times that the end of the log is noted within the time that the replica may be behind. A replica that is behind is
 * checked as often.
 */
const NOTES = 4;

/** The WAL of the primary had this end at that time, or a later one. */
interface Position {
  /** On the clock of `performance.now()`. */
  at: number;
  position: string;
  /** Identity of the database of that log. */
  identity: string;
}

export interface ReplicaOptions {
  /** The primary: `Database` of the process. */
  primary: Database;
  /** The standby, with row-level security as at the primary. */
  standby: Database;
  /** Milliseconds. Every answer contains all older commits. */
  maxLagMs: number;
  /** Called after each read, with the server that has answered it. */
  onRead?: (server: 'replica' | 'primary') => void;
  /** Called when the primary begins to serve because of this reason, and with nothing when the replica serves again. */
  onChange?: (reason: string | undefined) => void;
}

/**
 * Reads of one tenant from a streaming standby. Every answer has what was committed `maxLagMs` ago or earlier: the standby
 * must have replayed what the primary's WAL had then, and proves it in the transaction of the read. No clock of
 * another machine counts, and an idle primary makes no standby appear old. If the standby is behind, away, or fails, the
 * primary answers.
 */
export class ReadReplica implements Pick<Reads, 'tenantQueries'> {
  private readonly options: Required<ReplicaOptions>;
  /** Oldest first. */
  private positions: Position[] = [];
  private readonly asking = new SingleFlight<Position>();
  /** WAL that the replica had not replayed at the last read. */
  private missed: Position | undefined;
  private restUntil = 0;
  private reason: string | undefined;

  constructor(options: ReplicaOptions) {
    this.options = { onRead: () => undefined, onChange: () => undefined, ...options };
  }

  async tenantQueries(tenantId: string, calls: readonly [Statement, Values][]): Promise<QueryResultRow[][]> {
    const { primary, onRead } = this.options;
    const isResting = performance.now() < this.restUntil;
    // The replica never has the newest position while others write: after the rest there must be one of some age.
    if (isResting) void this.notePosition();
    const rows = isResting ? undefined : await this.fromStandby(tenantId, calls);
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
    const { standby, onChange } = this.options;
    try {
      const needed = await this.neededPosition();
      const missed = this.missed ?? needed;
      const check: [Statement, Values] = [HAS_REPLAYED, [needed.position, needed.identity, missed.position]];
      const [[checked] = [], ...rows] = await standby.tenantQueries(tenantId, [check, ...calls]);
      if (!checked?.isStandby) {
        this.rest(REST_MS, 'DATABASE_REPLICA_URL leads to no standby of the database of DATABASE_URL');
        return undefined;
      }
      if (!checked.replayed) {
        this.noteMissed(checked.replayedMissed ? needed : missed);
        return undefined;
      }
      this.missed = undefined;
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

  /** The replica has not replayed `missed`, which is only a fault if that is too long ago. */
  private noteMissed(missed: Position): void {
    const { maxLagMs } = this.options;
    this.missed = missed;
    const isLate = performance.now() - missed.at > maxLagMs;
    const reason = isLate ? 'it is further behind than DATABASE_REPLICA_MAX_LAG_MS' : undefined;
    this.rest(Math.min(maxLagMs / NOTES, REST_MS), reason);
  }

  private rest(ms: number, reason: string | undefined): void {
    this.restUntil = performance.now() + ms;
    if (reason === undefined) return;
    if (this.reason === undefined) this.options.onChange(reason);
    this.reason = reason;
  }

  /** The oldest known end of the log that is not older than `maxLagMs`: the standby has it soonest. */
  private async neededPosition(): Promise<Position> {
    const newest = this.notePosition();
    return this.positions[0] ?? newest;
  }

  /** Forgets positions that are too old, and asks for the end of the log if the newest one has some age. */
  private notePosition(): Promise<Position> {
    const { maxLagMs } = this.options;
    const now = performance.now();
    this.positions = this.positions.filter(({ at }) => at >= now - maxLagMs);
    const newest = this.positions.at(-1);
    if (newest && newest.at >= now - maxLagMs / NOTES) return Promise.resolve(newest);
    const asked = this.asking.run(() => this.readPosition());
    asked.catch(() => undefined); // The next reader asks again.
    return asked;
  }

  private async readPosition(): Promise<Position> {
    // Taken before the question: the answer contains all commits until then.
    const at = performance.now();
    const position = { at, ...(await this.options.primary.logPosition()) };
    this.positions.push(position);
    return position;
  }
}
