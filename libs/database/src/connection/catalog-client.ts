import { PrismaPg } from '@prisma/adapter-pg';
import { Pool } from 'pg';
import { type Prisma, PrismaClient } from '../generated/client.js';
import { setScope, SYSTEM_SCOPE, tenantScope } from './row-security.js';
import { plainError } from './transient.js';

/** Default size of the pool, as in the CLI. */
const POOL_SIZE = 4;
const CONNECT_TIMEOUT_MS = 10_000;
const STATEMENT_TIMEOUT_MS = 15_000;

/** A slug or another unique name is taken. The message is for the operator. */
export class NameTakenError extends Error {
  override readonly name = 'NameTakenError';
}

/**
 * Prisma for tenants, tokens and agents, on connections of its own. A query for one tenant runs in that tenant's scope
 * (`inTenant`). The others run across tenants, in the scope of the connection: a token is found before its tenant is known,
 * and operators see all tenants.
 */
export class CatalogClient {
  readonly prisma: PrismaClient;
  private readonly pool: Pool;

  /** @param poolSize maximum number of connections */
  constructor(databaseUrl: string, poolSize = POOL_SIZE) {
    this.pool = new Pool({
      connectionString: databaseUrl,
      max: poolSize,
      application_name: 'baton-catalog',
      keepAlive: true,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      statement_timeout: STATEMENT_TIMEOUT_MS,
      // oxlint-disable-next-line typescript/no-misused-promises -- the pool waits for it; its type does not say so
      onConnect: async (client) => {
        await client.query(setScope(SYSTEM_SCOPE, 'SESSION'));
      },
    });
    this.pool.on('error', () => undefined);
    this.pool.on('connect', (client) => client.on('error', () => undefined));
    this.prisma = new PrismaClient({
      adapter: new PrismaPg(this.pool),
      errorFormat: 'minimal',
      // The default of 2 s to get a connection for a transaction is too short for a busy machine.
      transactionOptions: { maxWait: CONNECT_TIMEOUT_MS, timeout: STATEMENT_TIMEOUT_MS },
    });
  }

  /** Run a query across tenants; a lost connection rejects with `DatabaseUnavailableError`. */
  async run<T>(query: (prisma: PrismaClient) => Promise<T>): Promise<T> {
    return query(this.prisma).catch((error: unknown) => {
      throw plainError(error);
    });
  }

  /**
   * Like `run`, as the tenant: row-level security shows the query that tenant's rows only.
   * @param alone queries of one tenant with the same name here run one after the other: each sees what the one before
   *   has written
   */
  async inTenant<T>(
    tenantId: string,
    query: (prisma: PrismaClient) => Prisma.PrismaPromise<T>,
    alone?: string,
  ): Promise<T> {
    const scope = tenantScope(tenantId);
    const [, result] = await this.run((prisma) =>
      prisma.$transaction([
        alone === undefined
          ? prisma.$executeRaw`SELECT set_config('baton.tenant', ${scope}, true)`
          : prisma.$executeRaw`SELECT set_config('baton.tenant', ${scope}, true),
              pg_advisory_xact_lock(hashtextextended(${`${alone} ${tenantId}`}, 0))`,
        query(prisma),
      ]),
    );
    return result;
  }

  /** Like `run`, for an insert: rejects with `NameTakenError` if a unique name is taken. */
  async insert<T>(taken: string, query: (prisma: PrismaClient) => Promise<T>): Promise<T> {
    return this.run(query).catch((error: unknown) => {
      throw (error as { code?: string }).code === 'P2002'
        ? new NameTakenError(taken, { cause: error })
        : error;
    });
  }

  async close(): Promise<void> {
    await this.prisma.$disconnect();
    if (!this.pool.ending) await this.pool.end();
  }
}
