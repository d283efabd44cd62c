import { PLATFORM_ACTOR } from '../audit/audit-records.js';
import { sessionConfig } from '@baton/postgres';
import { PrismaPg } from '@prisma/adapter-pg';
import { randomBytes, randomUUID } from 'node:crypto';
import { Client, Pool } from 'pg';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import {
  CatalogClient,
  inspectDatabase,
  migrate,
  OperatorTokenStore,
  SecretStore,
  TenantStore,
  TokenStore,
  OPERATOR_ACTOR,
} from '../index.js';
import { PrismaClient } from '../generated/client.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Only the clock of the machine is wrong. */
const REAL = [
  'hrtime',
  'nextTick',
  'performance',
  'queueMicrotask',
  'setImmediate',
  'clearImmediate',
  'setInterval',
  'clearInterval',
  'setTimeout',
  'clearTimeout',
] as const;
/** Behind the next change of the clocks in New York, and before it. */
const LATER = new Date('2035-07-01T00:00:00.123Z');
const SOON = new Date('2035-12-01T10:20:30.456Z');

let test: TestDatabase;
let client: Client;
beforeEach(async () => {
  test = await createDatabase();
  client = new Client(sessionConfig(test.url));
  await client.connect();
  await client.query(`SET baton.tenant = 'system'`);
});
afterEach(async () => {
  await client.end();
  await test.drop();
});

/** Stores as release 0.2.0 has them: their sessions have the time zone of Postgres. */
async function asBefore<T>(zone: string, work: (catalog: CatalogClient) => Promise<T>): Promise<T> {
  const database = new URL(test.url).pathname.slice(1);
  await client.query(`ALTER DATABASE ${database} SET TimeZone = '${zone}'`);
  const catalog = new CatalogClient(test.url);
  const pool = new Pool({ connectionString: test.url });
  pool.on('connect', (each) => {
    // The pool does not wait until Postgres has closed the connection. `drop` may close it first.
    each.on('error', () => undefined);
    void each.query(`SET baton.tenant = 'system'`);
  });
  const before = new PrismaClient({ adapter: new PrismaPg(pool) });
  // Their Prisma wrote the times of new rows, and not Postgres.
  const writing = before.$extends({
    query: {
      $allModels: {
        create: ({ args, query }) =>
          query({ ...args, data: { createdAt: new Date(), ...args.data } } as typeof args),
        upsert: ({ args, query }) => {
          const times = { createdAt: new Date(), updatedAt: new Date() };
          return query({ ...args, create: { ...times, ...args.create } } as typeof args);
        },
      },
    },
  });
  jest.spyOn(catalog, 'prisma', 'get').mockReturnValue(writing as unknown as PrismaClient);
  try {
    return await work(catalog);
  } finally {
    await before.$disconnect();
    await pool.end();
    await catalog.close();
  }
}

const secret = () => ({ hash: randomUUID(), prefix: randomUUID() });
const RIGHTS = { name: 'ci', scopes: [], agents: [], requestsPerSecond: null };
const SEALED = { keyId: 'k', nonce: randomBytes(12), ciphertext: randomBytes(20) };

/** All times of the rows that `work` has made, in ms. */
async function times(): Promise<Record<string, (number | null)[]>> {
  const columns = {
    tenants: ['created_at'],
    api_tokens: ['created_at', 'expires_at', 'revoked_at'],
    operator_tokens: ['created_at', 'expires_at', 'revoked_at'],
    secrets: ['created_at', 'updated_at'],
  };
  const found: Record<string, (number | null)[]> = {};
  for (const [table, names] of Object.entries(columns)) {
    for (const name of names) {
      const { rows } = await client.query<{ at: Date | null }>(
        `SELECT ${name} AS at FROM ${table} ORDER BY created_at`,
      );
      found[`${table}.${name}`] = rows.map(({ at }) => at && at.getTime());
    }
  }
  return found;
}

const isNow = (at: number | null | undefined): boolean => Math.abs((at ?? 0) - Date.now()) < 5 * MINUTE_MS;

describe.each(['America/New_York', 'Asia/Kolkata', 'UTC'])(
  'times that release 0.2.0 stored in %s',
  (zone) => {
    it('are found by the doctor and mended by a migration, once', async () => {
      const { tenantId } = await asBefore(zone, async (catalog) => {
        const { id: tenantId } = await new TenantStore(catalog).create('acme', PLATFORM_ACTOR);
        const tokens = new TokenStore(catalog);
        const token = await tokens.create(
          { tenantId, ...RIGHTS, expiresAt: SOON, ...secret() },
          PLATFORM_ACTOR,
        );
        await tokens.create({ tenantId, ...RIGHTS, expiresAt: LATER, ...secret() }, PLATFORM_ACTOR);
        const rotated = await tokens.create(
          { tenantId, ...RIGHTS, expiresAt: SOON, ...secret() },
          PLATFORM_ACTOR,
        );
        await tokens.rotate(
          tenantId,
          rotated.id,
          secret(),
          { overlapMs: 0, expiresAt: LATER },
          PLATFORM_ACTOR,
        );
        await tokens.revoke(tenantId, token.id, PLATFORM_ACTOR);
        const operators = new OperatorTokenStore(catalog);
        for (const expiresAt of [SOON, LATER])
          await operators.create({ name: 'op', role: 'full', expiresAt, ...secret() }, OPERATOR_ACTOR);
        await new SecretStore(catalog).put({ tenantId, name: 'key' }, SEALED, undefined, [], PLATFORM_ACTOR);
        return { tenantId };
      });
      expect(tenantId).toBeDefined();
      const stored = await times();
      const isRight = zone === 'UTC';
      expect(isNow(stored['api_tokens.created_at']?.[0])).toBe(isRight);
      const facts = await inspectDatabase(test.url, undefined);
      expect(facts.shiftedTimes).toEqual({ count: isRight ? 0 : 12, zone, unknownTokens: 0 });

      const lines: string[] = [];
      await migrate(test.url, { report: (line) => lines.push(line) });
      expect(lines).toEqual(isRight ? [] : [expect.stringContaining('12 times')]);
      const right = await times();
      expect(right['api_tokens.expires_at']).toEqual([SOON, LATER, LATER].map(Number));
      expect(right['operator_tokens.expires_at']).toEqual([SOON, LATER].map(Number));
      const moments = Object.entries(right).filter(([name]) => !name.endsWith('expires_at'));
      expect(moments.filter(([, all]) => !all.every((at) => at === null || isNow(at)))).toEqual([]);

      await migrate(test.url);
      expect(await times()).toEqual(right);
      expect((await inspectDatabase(test.url, undefined)).shiftedTimes).toMatchObject({ count: 0 });
    });
  },
);

it('times are those of Postgres where the clock of the machine is two hours ahead', async () => {
  const catalog = new CatalogClient(test.url);
  const machine = jest.useFakeTimers({ now: Date.now() + 2 * HOUR_MS, doNotFake: [...REAL] });
  try {
    const { id: tenantId } = await new TenantStore(catalog).create('acme', PLATFORM_ACTOR);
    const token = { tenantId, ...RIGHTS, expiresAt: SOON, ...secret() };
    await new TokenStore(catalog).create(token, PLATFORM_ACTOR);
    const operator = { name: 'op', role: 'full', expiresAt: SOON, ...secret() } as const;
    await new OperatorTokenStore(catalog).create(operator, OPERATOR_ACTOR);
    await new SecretStore(catalog).put({ tenantId, name: 'key' }, SEALED, undefined, [], PLATFORM_ACTOR);
  } finally {
    machine.useRealTimers();
    await catalog.close();
  }
  const moments = Object.entries(await times()).filter(([name]) => !name.endsWith('expires_at'));
  expect(moments.filter(([, all]) => !all.every((at) => at === null || isNow(at)))).toEqual([]);
  expect((await inspectDatabase(test.url, undefined)).shiftedTimes).toMatchObject({ count: 0 });
});

it('a token without a record is left as it is, and the doctor counts it', async () => {
  await asBefore('America/New_York', async (catalog) => {
    const { id: tenantId } = await new TenantStore(catalog).create('acme', PLATFORM_ACTOR);
    await new TokenStore(catalog).create(
      { tenantId, ...RIGHTS, expiresAt: SOON, ...secret() },
      PLATFORM_ACTOR,
    );
  });
  await client.query(`BEGIN; SET LOCAL baton.audit = 'delete'; DELETE FROM audit_records; COMMIT`);
  const before = await times();
  await migrate(test.url);
  expect(await times()).toEqual(before);
  const { shiftedTimes } = await inspectDatabase(test.url, undefined);
  expect(shiftedTimes).toEqual({ count: 0, zone: 'America/New_York', unknownTokens: 1 });
});

it('a token whose end was changed by hand is left as it is', async () => {
  const catalog = new CatalogClient(test.url);
  const { id: tenantId } = await new TenantStore(catalog).create('acme', PLATFORM_ACTOR);
  await new TokenStore(catalog).create({ tenantId, ...RIGHTS, expiresAt: SOON, ...secret() }, PLATFORM_ACTOR);
  await catalog.close();
  await client.query(`UPDATE api_tokens SET expires_at = expires_at + interval '1 day'`);
  const before = await times();
  await migrate(test.url);
  expect(await times()).toEqual(before);
});
