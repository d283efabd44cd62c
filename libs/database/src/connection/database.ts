import type { MasterKeyIds } from '@baton/config';
import { setTimeout as delay } from 'node:timers/promises';
import {
  connectionConfig,
  type GivenUp,
  PostgresPool,
  SESSION_SETTINGS,
  sessionConfig,
} from '@baton/postgres';
import type { ClockReading } from '@baton/telemetry';
import { type ClientBase, DatabaseError, type PoolClient, type QueryResultRow } from 'pg';
import {
  type AuditListener,
  type AuditRecord,
  type NewAuditRecord,
  PLATFORM,
} from '../audit/audit-records.js';
import { auditRecordOf, type AuditRow, auditValues, RECORD } from '../audit/audit-sql.js';
import { ConnectionShares } from './connection-shares.js';
import { MAX_FLUSHES } from './group-commit.js';
import { ListReads } from './list-reads.js';
import { assertMasterKey, changeMasterKey, checkMasterKey } from './master-key-check.js';
import { MasterKeyError } from './master-key-error.js';
import { migrationNames } from './migrations-folder.js';
import { alone, assertCommitted, failedCallOf, sendTransaction } from './pg-pipeline.js';
import { assertBound, beginIn, type Plans, scopeOf, SYSTEM_SCOPE, tenantScope } from './row-security.js';
import { assertSession, NOT_IN_TRANSACTION } from './session-check.js';
import { sessionName } from './session-name.js';
import type { Statement, Values } from '../sql/statement.js';
import type { Reads } from './reads.js';
import { isDiskFull, isFull, isReadOnly, noteFailedTenant, plainError, rethrowPlain } from './transient.js';

export interface DatabaseOptions {
  url: string;
  /** DATABASE_SYSTEM_KEY: opens the scope of all tenants. */
  systemKey?: string | undefined;
  /** The master keys of this process. Unset: they are not compared with that of the database. */
  masterKeys?: MasterKeyIds | undefined;
  /** Maximum number of connections of this process to Postgres. */
  poolSize: number;
  /**
   * The URL leads to a pooler that gives a connection for one transaction. No setting and no prepared statement may stay on the connection,
   * and the pooler refuses settings at its start.
   */
  isPooled?: boolean;
  /** Also accept a role that row-level security does not bind. */
  allowRlsBypass?: boolean;
  timeouts?: DatabaseTimeouts;
  onAudit?: AuditListener | undefined;
  /** Called when a connection is given up, because Postgres has not answered in time. */
  onGivenUp?: ((what: GivenUp) => void) | undefined;
  /** Connections that are not used stay open. */
  keepsIdle?: boolean;
  /** Called with the name of each new session (`sessionName`). */
  onSession?: ((name: string | undefined) => void) | undefined;
  /** Called when the disk of Postgres is full, once until it has not been so for half a minute. */
  onDiskFull?: ((error: unknown) => void) | undefined;
  /** Creates the reader of `Database.lists`. */
  replica?: ((primary: Database) => Pick<Reads, 'tenantQueries'> & { close(): Promise<void> }) | undefined;
}

/** In milliseconds. */
interface DatabaseTimeouts {
  connectMs: number;
  statementMs: number;
  /** Longer than the server's own timeout: applies only to a server that no longer answers. */
  answerMs: number;
}

export type { Statement, Values };

/** Executes statements of a transaction, one after the other. */
export interface Transaction {
  query<Row extends QueryResultRow>(statement: Statement, values: Values): Promise<Row[]>;
  /** Writes a record of the audit log: of the tenant of the transaction, or of the platform if it is across tenants. */
  record(record: NewAuditRecord): Promise<void>;
}

/** SQL of what a database and its standbys have in common, and no other database has. */
export const DATABASE_IDENTITY = `(SELECT system_identifier::text FROM pg_control_system()) || '/' ||
  (SELECT oid::text FROM pg_database WHERE datname = current_database())`;
const LOG_POSITION = `SELECT pg_current_wal_lsn()::text AS position, ${DATABASE_IDENTITY} AS identity`;
const CLOCK = 'SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS ms';
const MIGRATIONS_EXIST: Statement = { text: `SELECT to_regclass('_prisma_migrations') IS NOT NULL AS found` };
const APPLIED_MIGRATIONS: Statement = {
  text: 'SELECT migration_name AS name FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL',
};

/**
 * Disables sequential scans and hash and merge joins. A connection keeps its plans, so a plan that was made while a table was small
 * still uses the index later.
 */
const BY_KEY = Object.fromEntries(
  ['seqscan', 'hashjoin', 'mergejoin', 'material'].map((way) => [`enable_${way}`, 'off']),
);

/** Settings of these connections beside `SESSION_SETTINGS`. */
const settingsOf = ({ statementMs }: DatabaseTimeouts): Record<string, string> => ({
  ...BY_KEY,
  statement_timeout: String(statementMs),
  idle_in_transaction_session_timeout: String(statementMs),
});

/** Sets all of them for one transaction. */
const transactionSettings = (timeouts: DatabaseTimeouts): Statement => ({
  name: 'transaction-settings',
  text: `SELECT ${Object.entries({ ...SESSION_SETTINGS, ...settingsOf(timeouts) })
    .filter(([name]) => !(name in NOT_IN_TRANSACTION) && name !== 'idle_session_timeout')
    .map(([name, value]) => `set_config('${name}', '${value}', true)`)
    .join(', ')}`,
});

/** A transaction of several tenants waits for no lock for long: the other tenants would wait with it. */
const WAIT_BRIEFLY: Statement = {
  name: 'wait-briefly',
  text: `SELECT set_config('lock_timeout', '50ms', true)`,
};

/** `on` at a standby as well. */
const READ_ONLY = `SELECT current_setting('transaction_read_only') AS value`;

/** The id of no tenant. */
const NO_TENANT = '00000000-0000-0000-0000-000000000000';

/** How long a refused connection, and a full disk, is reported. */
const FULL_MS = 30_000;

const TIMEOUTS: DatabaseTimeouts = { connectMs: 10_000, statementMs: 15_000, answerMs: 20_000 };

/**
 * The pool of connections to Postgres. Every statement has a scope, and row-level security shows it the rows of that
 * tenant only. Statements are pipelined: the tenant and the statements travel in one round trip, with the end of the
 * transaction. If one fails, Postgres refuses those after it and rolls all back.
 *
 * A role that row-level security does not bind gets no connection: everything rejects with `RowSecurityError`. A process with
 * another master key gets `MasterKeyError`, and a session without the settings that statements rely on `DatabaseSetupError`.
 * A lost connection rejects with `DatabaseUnavailableError`; see `isTransient`.
 */
export class Database {
  /** For lists, searches and sums, which may be a little old: a replica may answer. */
  readonly lists: Reads;
  /** For lists that must show the caller's last write. */
  readonly currentLists: Reads;
  private readonly listShares: ConnectionShares;
  private readonly replica: { close(): Promise<void> } | undefined;
  private readonly pool: PostgresPool;
  private readonly shares: ConnectionShares;
  private isBound: boolean;
  private isSetUp = false;
  private hasRightKey: boolean;
  private isKeyWrong = false;
  private fullAt = -Infinity;
  private diskFullAt = -Infinity;
  private readOnly = false;
  private readonly isPooled: boolean;
  private readonly onAudit: AuditListener | undefined;
  private readonly onSession: DatabaseOptions['onSession'];
  private readonly onDiskFull: ((error: unknown) => void) | undefined;
  private readonly systemKey: string | undefined;
  private readonly masterKeys: MasterKeyIds | undefined;
  /** First statement of each transaction through a pooler. */
  private readonly settings: Statement | undefined;

  constructor(options: DatabaseOptions) {
    const { url, systemKey, poolSize, isPooled = false, allowRlsBypass = false } = options;
    const { timeouts = TIMEOUTS, onAudit } = options;
    this.isBound = allowRlsBypass;
    this.masterKeys = options.masterKeys;
    this.hasRightKey = options.masterKeys === undefined;
    this.isPooled = isPooled;
    this.settings = isPooled ? transactionSettings(timeouts) : undefined;
    this.systemKey = systemKey;
    this.onAudit = onAudit;
    this.onSession = options.onSession;
    this.onDiskFull = options.onDiskFull;
    this.shares = ConnectionShares.ofPool(poolSize, timeouts.connectMs, SYSTEM_SCOPE);
    this.listShares = ConnectionShares.ofLists(poolSize, timeouts.connectMs);
    const replica = options.replica?.(this);
    this.replica = replica;
    this.currentLists = new ListReads(this, this.listShares);
    this.lists = replica ? new ListReads(replica, this.listShares) : this.currentLists;
    this.pool = new PostgresPool({
      ...(isPooled ? connectionConfig(url) : sessionConfig(url, settingsOf(timeouts))),
      max: poolSize,
      application_name: 'baton',
      pipeline: true,
      idleTimeoutMillis: options.keepsIdle ? 0 : 60_000,
      connectMs: timeouts.connectMs,
      answerMs: timeouts.answerMs,
      isPooled,
      onGivenUp: options.onGivenUp,
      // oxlint-disable-next-line typescript/no-misused-promises -- the pool waits for it; its type does not say so
      onConnect: (client) => this.check(client),
    });
    // A broken connection must not end the process. The caller that uses it gets the error.
    this.pool.on('error', () => undefined);
  }

  /** One statement in a transaction of its own, as the tenant. @returns its rows, after the commit */
  async tenantQuery<Row extends QueryResultRow>(tenantId: string, statement: Statement, values: Values) {
    const [rows] = await this.pipeline(tenantScope(tenantId), [[statement, values]]);
    return rows as Row[];
  }

  /** One statement in a transaction of its own, across tenants. @returns its rows, after the commit */
  async systemQuery<Row extends QueryResultRow>(statement: Statement, values: Values): Promise<Row[]> {
    const [rows] = await this.pipeline(SYSTEM_SCOPE, [[statement, values]]);
    return rows as Row[];
  }

  /** Several statements in one transaction and one round trip, across tenants. @returns the rows of each */
  async systemQueries(calls: readonly [Statement, Values][]): Promise<QueryResultRow[][]> {
    return this.pipeline(SYSTEM_SCOPE, calls);
  }

  /**
   * Several statements in one transaction and one round trip, as the tenant.
   * @param plans `generic`: all of them find rows by their keys, so each connection plans them once, for any values
   * @returns the rows of each
   */
  async tenantQueries(
    tenantId: string,
    calls: readonly [Statement, Values][],
    plans: Plans = 'for the values',
  ): Promise<QueryResultRow[][]> {
    return this.pipeline(tenantScope(tenantId), calls, plans);
  }

  /**
   * Statements of several tenants in one transaction and one round trip. Those of a tenant are executed in its scope, so they see
   * no rows of the others. All of them find rows by their keys (`plans` of `tenantQueries`). Rejects with a lock timeout rather
   * than have tenants wait for a lock of one of them.
   * @param tenants each of them once, in the order of `byTenant`
   * @returns the rows of each statement, by tenant
   */
  async tenantsQueries(
    tenants: readonly (readonly [string, readonly [Statement, Values][]])[],
  ): Promise<QueryResultRow[][][]> {
    const scopes = tenants.map(([tenantId, calls]) => ({ scope: tenantScope(tenantId), calls }));
    return this.pipelineOf(scopes, 'generic', scopes.length > 1 ? [[WAIT_BRIEFLY, []]] : []);
  }

  /**
   * Opens as many connections as one tenant's groups use at a time, and has each plan these statements of groups. So the first
   * calls need not wait for either. One after the other, with pauses that are random and longer on a slow server: many processes
   * may start at once.
   * @param callsOf the statements for a tenant, with a group of nothing
   */
  async prepare(callsOf: (tenantId: string) => readonly [Statement, Values][]): Promise<void> {
    const calls: [Statement, Values][] = [[WAIT_BRIEFLY, []], ...callsOf(NO_TENANT)];
    const begun = performance.now();
    for (let connections = 1; connections <= MAX_FLUSHES; connections++) {
      if (connections > 1)
        await delay(Math.random() * (performance.now() - begun), undefined, { ref: false });
      // All at once, so that each call has a connection of its own. A connection that has the plans answers fast.
      await Promise.all(
        Array.from({ length: connections }, () => this.tenantQueries(NO_TENANT, calls, 'generic')),
      );
    }
  }

  /** A transaction as the tenant. Commits when `work` resolves, rolls back when it rejects. */
  async inTenant<T>(tenantId: string, work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.transact(tenantScope(tenantId), work);
  }

  /** A transaction across tenants. Commits when `work` resolves, rolls back when it rejects. */
  async inSystem<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    return this.transact(SYSTEM_SCOPE, work);
  }

  /** Rejects with a plain reason if Postgres does not answer. Notes whether it may be written. */
  async ping(): Promise<void> {
    const { rows } = await this.ask((client) => client.query<{ value: string }>(READ_ONLY));
    this.readOnly = rows[0]?.value === 'on';
  }

  /** Reads the clock of Postgres. The time for a connection does not count. */
  async readClock(): Promise<ClockReading> {
    return this.ask(async (client) => {
      const sentAt = performance.now();
      const { rows } = await client.query<{ ms: number }>(CLOCK);
      return { serverMs: rows[0]?.ms ?? NaN, sentAt, receivedAt: performance.now() };
    });
  }

  /** The end of the WAL, which has everything that was committed before. Rejects at a standby. */
  async logPosition(): Promise<{ position: string; identity: string }> {
    type Row = { position: string; identity: string };
    const { rows } = await this.ask((client) => client.query<Row>(LOG_POSITION));
    return rows[0] ?? { position: '', identity: '' };
  }

  /** Names of the migrations that this version of the code needs and the database does not have. */
  async pendingMigrations(): Promise<string[]> {
    const [exists] = await this.systemQuery<{ found: boolean }>(MIGRATIONS_EXIST, []);
    const applied = exists?.found ? await this.systemQuery<{ name: string }>(APPLIED_MIGRATIONS, []) : [];
    const names = new Set(applied.map(({ name }) => name));
    return migrationNames().filter((name) => !names.has(name));
  }

  /**
   * Rejects with `MasterKeyError` if the key of the database is not one of these, by default those of this process. Connections
   * that were opened before the migrations have not been compared.
   */
  async assertMasterKey(keys = this.masterKeys): Promise<void> {
    if (!keys) return;
    try {
      await this.inSystem((session) => checkMasterKey(session, keys));
      if (keys === this.masterKeys) this.isKeyWrong = false;
    } catch (error) {
      if (keys === this.masterKeys && error instanceof MasterKeyError) this.isKeyWrong = true;
      throw error;
    }
  }

  /** Whether the database had another master key than this process when they were compared last. */
  get hasWrongKey(): boolean {
    return this.isKeyWrong;
  }

  /** From now on the newest of these keys is the key of the database. */
  async changeMasterKey(keys: MasterKeyIds): Promise<void> {
    await this.inSystem((session) => changeMasterKey(session, keys));
  }

  /**
   * Connections of this process by state. Postgres has not closed the `closing` ones yet. Callers that wait for a connection: because all
   * are taken (`awaited`), or because their tenant or the lists have their share (`over-share`).
   */
  get connections(): Readonly<Record<'busy' | 'idle' | 'closing' | 'awaited' | 'over-share', number>> {
    const { totalCount, idleCount: idle, waitingCount, closingCount: closing } = this.pool;
    const { all, share } = this.shares.waiting;
    const lists = this.listShares.waiting;
    return {
      busy: totalCount - idle,
      idle,
      closing,
      awaited: waitingCount + all,
      'over-share': share + lists.all + lists.share,
    };
  }

  /** Whether Postgres has refused a new connection of this process a moment ago, because there are too many. */
  get isFull(): boolean {
    return performance.now() - this.fullAt < FULL_MS;
  }

  /** Whether Postgres could not write a moment ago, because its disk is full. */
  get isDiskFull(): boolean {
    return performance.now() - this.diskFullAt < FULL_MS;
  }

  /** Whether the last `ping` has reached a standby, or a session that may only read. */
  get isReadOnly(): boolean {
    return this.readOnly;
  }

  /** Notes why Postgres has refused a connection or a statement, also of other clients of the same database. */
  noteRefused(error: unknown): void {
    if (isFull(error)) this.fullAt = performance.now();
    if (!isDiskFull(error)) return;
    if (!this.isDiskFull) this.onDiskFull?.(error);
    this.diskFullAt = performance.now();
  }

  /** Close every connection once it is idle. */
  async close(): Promise<void> {
    await Promise.all([this.pool.ending ? undefined : this.pool.end(), this.replica?.close()]);
  }

  /** Most checks are made once: every connection has the same role, and goes the same way. */
  private async check(client: ClientBase): Promise<void> {
    if (!this.isSetUp) await assertSession(client, this.isPooled);
    this.isSetUp = true;
    if (!this.isBound) await assertBound(client, this.systemKey);
    this.isBound = true;
    if (this.masterKeys && !this.hasRightKey) {
      this.hasRightKey = await assertMasterKey(client, this.masterKeys, this.systemKey);
    }
    this.onSession?.(await sessionName(client));
  }

  private async pipeline(
    scope: string,
    calls: readonly [Statement, Values][],
    plans: Plans = 'for the values',
  ): Promise<QueryResultRow[][]> {
    const [rows = []] = await this.pipelineOf([{ scope, calls }], plans);
    return rows;
  }

  private async pipelineOf(
    scopes: readonly { scope: string; calls: readonly [Statement, Values][] }[],
    plans: Plans,
    before: readonly [Statement, Values][] = [],
  ): Promise<QueryResultRow[][][]> {
    const sent: [Statement, Values][] = [
      ...(this.settings ? [[this.settings, []] as [Statement, Values]] : []),
      ...before,
    ];
    const starts = scopes.map(({ scope, calls }) => {
      const { values, ...enter } = scopeOf(scope, this.systemKey, plans);
      return sent.push([enter, values], ...calls) - calls.length;
    });
    // The statements of several tenants hold one connection for all of them.
    const holder = scopes.length === 1 ? (scopes[0]?.scope ?? SYSTEM_SCOPE) : SYSTEM_SCOPE;
    const client = await this.connect(holder);
    let refused: unknown;
    try {
      const results = await sendTransaction(client, sent, this.isPooled);
      return scopes.map(({ calls }, i) =>
        results.slice(starts[i], (starts[i] ?? 0) + calls.length).map(({ rows }) => rows),
      );
    } catch (error) {
      refused = error;
      this.noteRefused(error);
      if (scopes.length > 1 && error instanceof DatabaseError) {
        const failed = failedCallOf(error) ?? -1;
        const scope = scopes[starts.findLastIndex((start) => start <= failed)]?.scope;
        if (scope !== undefined) noteFailedTenant(error, scope);
      }
      throw plainError(error);
    } finally {
      this.release(holder, client, refused);
    }
  }

  private async transact<T>(scope: string, work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const client = await this.connect(scope);
    let refused: unknown;
    try {
      const { settings } = this;
      const begin = [...beginIn(scope, this.systemKey), ...(settings ? [settings] : [])];
      const named = <S extends Statement>(statement: S): S =>
        settings ? { ...statement, name: undefined } : statement;
      const begun = Promise.all(begin.map((statement) => client.query(named(statement))));
      // The following statements report its failure.
      begun.catch(() => undefined);
      const query: Transaction['query'] = async (statement, values) =>
        (await client.query<never>(alone(named(statement), values))).rows;
      const records: AuditRecord[] = [];
      const result = await work({
        query,
        record: async (record) => {
          const rows = await query<AuditRow>(
            RECORD,
            auditValues(scope === SYSTEM_SCOPE ? PLATFORM : scope, record),
          );
          records.push(...rows.map(auditRecordOf));
        },
      });
      await begun;
      assertCommitted(await client.query('COMMIT'));
      if (this.onAudit) records.forEach(this.onAudit);
      return result;
    } catch (error) {
      refused = error;
      this.noteRefused(error);
      await client.query('ROLLBACK').catch(() => undefined);
      throw plainError(error);
    } finally {
      this.release(scope, client, refused);
    }
  }

  /** A statement about the server, outside of a transaction and of any scope. */
  private async ask<T>(send: (client: PoolClient) => Promise<T>): Promise<T> {
    const client = await this.connect(SYSTEM_SCOPE);
    let refused: unknown;
    try {
      return await send(client);
    } catch (error) {
      refused = error;
      this.noteRefused(error);
      throw plainError(error);
    } finally {
      this.release(SYSTEM_SCOPE, client, refused);
    }
  }

  /** @param holder the scope whose connection it is */
  private async connect(holder: string): Promise<PoolClient> {
    await this.shares.take(holder).catch(rethrowPlain);
    return this.pool.connect().catch((error: unknown) => {
      this.shares.give(holder);
      this.noteRefused(error);
      return rethrowPlain(error);
    });
  }

  /**
   * Gives the connection back. Closes it if a transaction is open on it, or if its server is no longer the primary: the next
   * connection may lead to the new primary.
   */
  private release(holder: string, client: PoolClient, refused: unknown): void {
    client.release(client.getTransactionStatus() !== 'I' || isReadOnly(refused));
    this.shares.give(holder);
  }
}
