import { randomUUID } from 'node:crypto';
import { TokenUsageStore } from '../index.js';
import { type Stores, openStores, sql } from '../stores.fixture.js';

let stores: Stores;
let usage: TokenUsageStore;
beforeAll(async () => {
  stores = await openStores();
  usage = new TokenUsageStore(stores.database);
});
afterAll(() => stores.close());

const spent = (inputTokens: number, outputTokens = 0) => ({
  model: 'openai/m',
  inputTokens,
  outputTokens,
  cachedInputTokens: 0,
});

const tenant = () => {
  const tenantId = randomUUID();
  const reserve = async (tokens: number, runId: string = randomUUID(), max = 1000, forMs = 60_000) =>
    (await usage.reserve({ tenantId, runId, id: runId, replaces: [], tokens, forMs, max })) === undefined;
  return { tenantId, reserve };
};

describe('the tokens of a tenant', () => {
  it('are never promised twice to concurrent calls', async () => {
    const { reserve } = tenant();
    // Few more than fit: on a busy machine the last ones would wait too long for a connection.
    const got = await Promise.all(Array.from({ length: 130 }, () => reserve(9)));
    expect(got.filter(Boolean)).toHaveLength(111);
  });

  it('count as they were spent, in place of what was reserved for the call', async () => {
    const { tenantId, reserve } = tenant();
    const run = randomUUID();
    expect(await reserve(900, run)).toBe(true);
    expect(await reserve(200)).toBe(false);
    await usage.record(tenantId, run, spent(300, 50), run);
    expect(await reserve(651)).toBe(false);
    expect(await reserve(650)).toBe(true);
  });

  it('count whatever the model is called', async () => {
    const { tenantId, reserve } = tenant();
    await usage.record(tenantId, randomUUID(), { ...spent(600), model: 'openai-compatible/m\0' });
    expect(await reserve(401)).toBe(false);
  });

  it('that a run had reserved before are its own: an attempt after one that died takes no more', async () => {
    const { reserve } = tenant();
    const run = randomUUID();
    expect(await reserve(600, run)).toBe(true);
    expect(await reserve(600, run)).toBe(true);
    expect(await reserve(600)).toBe(false);
  });

  it('that were reserved by a worker that is gone are free again after their time', async () => {
    const { tenantId, reserve } = tenant();
    await reserve(900);
    await sql(
      stores,
      `UPDATE token_reservations SET expires_at = now() - interval '1 s' WHERE tenant_id = '${tenantId}'`,
    );
    expect(await reserve(900)).toBe(true);
  });

  it('begin again every day, and belong to one tenant', async () => {
    const { tenantId, reserve } = tenant();
    await usage.record(tenantId, randomUUID(), spent(1000));
    expect(await reserve(1)).toBe(false);
    expect(await tenant().reserve(1000)).toBe(true);
    await sql(stores, `UPDATE token_usage SET day = day - 1 WHERE tenant_id = '${tenantId}'`);
    expect(await reserve(1000)).toBe(true);
    await sql(stores, `UPDATE token_usage SET day = day - 401 WHERE tenant_id = '${tenantId}'`);
    await reserve(1);
    expect(await sql(stores, `SELECT 1 FROM token_usage WHERE tenant_id = '${tenantId}'`)).toEqual([]);
  });
});
