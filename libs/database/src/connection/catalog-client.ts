import { type GivenUp, PostgresPool, sessionConfig } from '@baton/postgres';
import { PrismaPg } from '@prisma/adapter-pg';
import type { PoolClient, QueryResultRow } from 'pg';
import type { AuditListener, AuditRecord, NewAuditRecord } from '../audit/audit-records.js';
import { auditRecordOf, type AuditRow, auditValues, RECORD } from '../audit/audit-sql.js';
import { Prisma, PrismaClient } from '../generated/client.js';
import { Database, type Statement, type Transaction, type Values } from './database.js';
import { systemScope, tenantScope } from './row-security.js';
import { assertSession } from './session-check.js';
import { plainError } from './transient.js';

/** Default size of the pool, as in the CLI. */
const POOL_SIZE = 4;
/** A server that restarts takes connections again within seconds. A caller waits. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Statements of the catalog are short. Deletions of a tenant are made in slices elsewhere. */
const STATEMENT_TIMEOUT_MS = 15_000;
/** Longer than the server's own timeout: applies only to a server that no longer answers. */
const ANSWER_MS = 20_000;

/** A transaction of Prisma for statements of this library. They return no bigint, which JavaScript would get as one. */
export const transactionOf = (prisma: Prisma.TransactionClient): Pick<Transaction, 'query'> => ({
  query: ({ text }, values) => prisma.$queryRawUnsafe(text, ...values),
});

/** A change of the catalog. @param record writes a record of the audit log in the same transaction */
export type CatalogChange<T> = (
  prisma: Prisma.TransactionClient,
  record: (record: NewAuditRecord) => Promise<void>,
) => Promise<T>;

export interface CatalogOptions {
  /** DATABASE_SYSTEM_KEY: opens the scope of all tenants. */
  systemKey?: string | undefined;
  /** Maximum number of connections. */
  poolSize?: number;
  onAudit?: AuditListener | undefined;
  /** Called when a connection is given up, because Postgres has not answered in time. */
  onGivenUp?: ((what: GivenUp) => void) | undefined;
  /** Executes plain SQL, without Prisma. Unset: connections of its own do. */
  database?: Database | undefined;
}

/** Leaves the connection's scope for that of a tenant, which cannot read the key, until the transaction ends. */
const enter = (tenantId: string): Prisma.Sql =>
  Prisma.sql`set_config('baton.tenant', ${tenantId}, true), set_config('baton.system_key', '', true)`;

/** With the protocol that takes one statement: behind a `;` nothing ends a tenant's transaction. */
function takeOneStatement(client: PoolClient): void {
  const query = client.query.bind(client) as (...given: unknown[]) => unknown;
  const extended = (given: unknown) =>
    typeof given === 'object' ? { ...given, queryMode: 'extended' } : given;
  Object.assign(client, { query: (first: unknown, ...rest: unknown[]) => query(extended(first), ...rest) });
}

/**
 * Prisma for tenants, tokens and agents, on connections of its own. A query for one tenant runs in that tenant's scope
 * (`inTenant`). The others run across tenants, in the scope of the connection: a token is found before its tenant is known,
 * and operators see all tenants. What a call or a run asks is SQL (`query`, `queryInTenant`), which `Database` executes: most
 * processes never load Prisma.
 */
export class CatalogClient {
  private client: PrismaClient | undefined;
  private readonly pool: PostgresPool;
  private readonly onAudit: AuditListener | undefined;
  private readonly database: Database;
  private readonly ownsDatabase: boolean;
  private isSetUp = false;

  constructor(databaseUrl: string, options: CatalogOptions = {}) {
    const { systemKey, poolSize = POOL_SIZE, onAudit, onGivenUp } = options;
    this.onAudit = onAudit;
    // The role is checked by the `Database` of the process.
    this.database =
      options.database ?? new Database({ url: databaseUrl, systemKey, poolSize, allowRlsBypass: true });
    this.ownsDatabase = options.database === undefined;
    const timeout = String(STATEMENT_TIMEOUT_MS);
    this.pool = new PostgresPool({
      ...sessionConfig(databaseUrl, {
        statement_timeout: timeout,
        idle_in_transaction_session_timeout: timeout,
      }),
      max: poolSize,
      application_name: 'baton-catalog',
      connectMs: CONNECT_TIMEOUT_MS,
      answerMs: ANSWER_MS,
      onGivenUp,
      // oxlint-disable-next-line typescript/no-misused-promises -- the pool waits for it; its type does not say so
      onConnect: async (client) => {
        if (!this.isSetUp) await assertSession(client);
        this.isSetUp = true;
        await client.query(systemScope(systemKey, 'session'));
      },
    });
    this.pool.on('error', () => undefined);
    this.pool.on('connect', takeOneStatement);
  }

  get prisma(): PrismaClient {
    this.client ??= new PrismaClient({
      adapter: new PrismaPg(this.pool),
      errorFormat: 'minimal',
      // The default of 2 s to get a connection for a transaction is too short for a busy machine.
      transactionOptions: { maxWait: CONNECT_TIMEOUT_MS, timeout: STATEMENT_TIMEOUT_MS },
    });
    return this.client;
  }

  /** One statement across tenants, without Prisma. Rejects like `run`. */
  async query<Row extends QueryResultRow>(statement: Statement, values: Values): Promise<Row[]> {
    return this.database.systemQuery<Row>(statement, values);
  }

  /** Like `query`, as the tenant: row-level security shows the statement that tenant's rows only. */
  async queryInTenant<Row extends QueryResultRow>(
    tenantId: string,
    statement: Statement,
    values: Values,
  ): Promise<Row[]> {
    return this.database.tenantQuery<Row>(tenantId, statement, values);
  }

  /** Run a query across tenants; a lost connection rejects with `DatabaseUnavailableError`. */
  async run<T>(query: (prisma: PrismaClient) => Promise<T>): Promise<T> {
    return query(this.prisma).catch((error: unknown) => {
      this.database.noteRefused(error);
      throw plainError(error);
    });
  }

  /** Like `run`, as the tenant: row-level security shows the query that tenant's rows only. */
  async inTenant<T>(tenantId: string, query: (prisma: PrismaClient) => Prisma.PrismaPromise<T>): Promise<T> {
    tenantScope(tenantId);
    const [, result] = await this.run((prisma) =>
      prisma.$transaction([prisma.$executeRaw`SELECT ${enter(tenantId)}`, query(prisma)]),
    );
    return result;
  }

  /**
   * A change as the tenant, and its record in the audit log, in one transaction. `work` calls `record` for what it has
   * changed; without a call there is no record.
   * @param alone changes of one tenant with the same name here run one after the other: each sees what the one before has written
   */
  async change<T>(tenantId: string, work: CatalogChange<T>, alone?: string): Promise<T> {
    tenantScope(tenantId);
    return this.transact(tenantId, work, async (prisma) => {
      await prisma.$executeRaw`SELECT ${enter(tenantId)}`;
      if (alone === undefined) return;
      await prisma.$executeRaw`SELECT pg_advisory_xact_lock(hashtextextended(${`${alone} ${tenantId}`}, 0))`;
    });
  }

  /** Like `change`, for a change that must see the rows of other tenants. @param tenantId whose record it is */
  async changeAcross<T>(tenantId: string, work: CatalogChange<T>): Promise<T> {
    return this.transact(tenantId, work);
  }

  async close(): Promise<void> {
    await this.client?.$disconnect();
    if (this.ownsDatabase) await this.database.close();
    if (!this.pool.ending) await this.pool.end();
  }

  private async transact<T>(
    tenantId: string,
    work: CatalogChange<T>,
    begin?: (prisma: Prisma.TransactionClient) => Promise<void>,
  ): Promise<T> {
    const records: AuditRecord[] = [];
    const result = await this.run((client) =>
      client.$transaction(async (prisma) => {
        await begin?.(prisma);
        return work(prisma, async (record) => {
          const values = auditValues(tenantId, record);
          const rows = await prisma.$queryRawUnsafe<AuditRow[]>(RECORD.text, ...values);
          records.push(...rows.map(auditRecordOf));
        });
      }),
    );
    if (this.onAudit) records.forEach(this.onAudit);
    return result;
  }
}
