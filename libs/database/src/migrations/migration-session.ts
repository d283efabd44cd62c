import { setTimeout as delay } from 'node:timers/promises';
import type { Client, QueryResult } from 'pg';
import { beginIn, SYSTEM_SCOPE } from '../connection/row-security.js';
import { StepLines } from './step-lines.js';

export interface MigrationOptions {
  /** DATABASE_SYSTEM_KEY: a migration changes the rows of all tenants. */
  systemKey?: string | undefined;
  /** How long a statement waits for a lock while other sessions queue behind it. */
  lockTimeoutMs: number;
  /** How long a statement is retried before the migration fails. */
  lockPatienceMs: number;
  /** Called with each line of progress. */
  report: (line: string) => void;
}

/** Another session as `pg_stat_activity` has it; `seconds` is the age of its transaction. */
export interface OtherSession {
  pid: number;
  name: string;
  state: string | null;
  seconds: number | null;
}

export interface Query {
  text: string;
  values?: unknown[];
}

/** A statement, or a function that makes it from the number of rows that the statement before has changed. */
type NextQuery = Query | ((changed: number) => Query);

/** SQLSTATEs lock_not_available and deadlock_detected: the same statement may succeed later. */
const LOCK_CONFLICTS = new Set(['55P03', '40P01']);
/** The pause doubles with each try up to here: locks are held for seconds, or until an operator acts. */
const MAX_PAUSE_MS = 10_000;
/** Columns of an {@link OtherSession}. */
export const SESSION_COLUMNS = `a.pid, coalesce(nullif(a.application_name, ''), a.backend_type) AS name, a.state,
  extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS seconds`;
const BLOCKERS = `SELECT ${SESSION_COLUMNS}
  FROM unnest(pg_blocking_pids($1)) blocker JOIN pg_stat_activity a ON a.pid = blocker LIMIT 3`;

/** The session that changes the schema, and a second session that observes its locks. */
export class MigrationSession {
  constructor(
    readonly client: Client,
    readonly observer: Client,
    readonly options: MigrationOptions,
  ) {}

  /**
   * Executes statements as one transaction. From its beginning to its last lock no more than `lockTimeoutMs` pass;
   * otherwise it is rolled back, lets the other sessions continue, and tries again later.
   * @returns how many rows its first statement has changed
   */
  async transact(lines: StepLines, lockTimeoutMs: number, queries: NextQuery[]): Promise<number> {
    const begin = performance.now();
    let blocker = 'another session';
    for (let attempt = 1; ; attempt++) {
      const blockers = this.findBlockers(lockTimeoutMs / 2);
      try {
        return await this.attempt(lockTimeoutMs, queries);
      } catch (error) {
        if (!isLockConflict(error)) throw error;
        // On a busy machine the lock may be free before it is looked up. It was most likely the session of the attempt before.
        blocker = (await blockers.found) ?? blocker;
        const waited = performance.now() - begin;
        const pause = Math.min(MAX_PAUSE_MS, lockTimeoutMs * 2 ** (attempt - 1));
        if (waited + pause > this.options.lockPatienceMs) {
          throw new Error(
            `no lock in ${secondsText(waited)}, ${attempt} attempts; held by ${blocker}. End it, or migrate when it has ended.`,
            { cause: error },
          );
        }
        lines.say(
          `gave way after ${secondsText(lockTimeoutMs)}, waits for ${blocker}; attempt ${attempt + 1} in ${secondsText(pause)}`,
        );
        await delay(pause);
      } finally {
        blockers.stop();
      }
    }
  }

  /** Begins a transaction in the scope of all tenants. */
  async begin(): Promise<void> {
    for (const statement of beginIn(SYSTEM_SCOPE, this.options.systemKey)) await this.client.query(statement);
  }

  private async attempt(lockTimeoutMs: number, queries: NextQuery[]): Promise<number> {
    const deadline = performance.now() + lockTimeoutMs;
    const rows: number[] = [];
    try {
      await this.begin();
      for (const next of queries) {
        const query = typeof next === 'function' ? next(rows.at(-1) ?? 0) : next;
        const left = Math.max(1, Math.round(deadline - performance.now()));
        rows.push(await this.execute(`SET LOCAL lock_timeout = ${left}`, query));
      }
      await this.client.query('COMMIT');
    } catch (error) {
      await this.client.query('ROLLBACK').catch(() => undefined);
      throw error;
    }
    return rows[0] ?? 0;
  }

  /** In one round trip if there are no values: the protocol allows several statements only then. @returns how many rows have changed */
  private async execute(first: string, { text, values }: Query): Promise<number> {
    if (!values) {
      const results = (await this.client.query(`${first}; ${text}`)) as unknown as QueryResult[];
      return results[1]?.rowCount ?? 0;
    }
    await this.client.query(first);
    return (await this.client.query(text, values)).rowCount ?? 0;
  }

  /** Reads once, after this time, which sessions block ours. */
  private findBlockers(afterMs: number): { found: Promise<string | undefined>; stop: () => void } {
    const end = new AbortController();
    const ask = async (): Promise<string | undefined> => {
      await delay(afterMs, undefined, { signal: end.signal });
      const { rows } = await this.observer.query<OtherSession>(BLOCKERS, [this.pid]);
      return rows.map(sessionText).join(', ') || undefined;
    };
    return { found: ask().catch(() => undefined), stop: () => end.abort() };
  }

  /** The process id of {@link MigrationSession.client} in Postgres. */
  get pid(): number {
    return (this.client as Client & { processID: number }).processID;
  }
}

/** Whether a statement failed only because another session held a lock. */
export const isLockConflict = (error: unknown): boolean =>
  LOCK_CONFLICTS.has((error as { code?: string }).code ?? '');

/** `pid 12 (psql, idle in transaction, for 34 s)`. */
export const sessionText = ({ pid, name, state, seconds: age }: OtherSession): string =>
  `pid ${pid} (${[name, state, age !== null && `for ${secondsText(age * 1000)}`].filter(Boolean).join(', ')})`;

/** A duration for people, in seconds: `0.25 s`, `34 s`. */
export const secondsText = (ms: number): string =>
  ms < 10_000 ? `${(ms / 1000).toFixed(2)} s` : `${Math.round(ms / 1000)} s`;
