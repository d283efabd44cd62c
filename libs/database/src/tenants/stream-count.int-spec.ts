import { randomUUID } from 'node:crypto';
import { StreamCountStore } from '../index.js';
import { type Stores, openStores, sql } from '../stores.fixture.js';

let stores: Stores;
let counts: StreamCountStore;
beforeAll(async () => {
  stores = await openStores();
  counts = new StreamCountStore(stores.database);
});
afterAll(() => stores.close());

const claim = (tenantId: string, processId: string, held: number, wanted: number, max = 5) =>
  counts.claim({ tenantId, processId, held, wanted, max });

describe('the streams of a tenant', () => {
  it('are never more than its limit, however many processes claim at once', async () => {
    for (let round = 0; round < 20; round++) {
      const tenantId = randomUUID();
      const claims = Array.from({ length: 8 }, () => claim(tenantId, randomUUID(), 0, 3));
      const granted = await Promise.all(claims);
      expect(granted.reduce((sum, each) => sum + each)).toBe(5);
    }
  });

  it('stay those of a process when the limit becomes smaller than what it has', async () => {
    const [tenantId, processId] = [randomUUID(), randomUUID()];
    expect(await claim(tenantId, processId, 0, 4)).toBe(4);
    expect(await claim(tenantId, processId, 4, 1, 2)).toBe(0);
    expect(await counts.touch(processId)).toEqual(new Map([[tenantId, 4]]));
    expect(await claim(tenantId, processId, 1, 2, 2)).toBe(1);
  });

  it('are counted up to the largest limit there is', async () => {
    expect(await claim(randomUUID(), randomUUID(), 0, 2, 999_999_999_999_999)).toBe(2);
  });

  it('of processes that have been silent for a minute are forgotten', async () => {
    const [tenantId, gone, alive] = [randomUUID(), randomUUID(), randomUUID()];
    await counts.report(tenantId, gone, 3);
    await sql(
      stores,
      `UPDATE stream_counts SET seen_at = now() - interval '61 s' WHERE process_id = '${gone}'`,
    );
    await counts.report(tenantId, alive, 1);
    await counts.touch(alive);
    expect(await sql(stores, `SELECT streams FROM stream_counts WHERE tenant_id = '${tenantId}'`)).toEqual([
      { streams: 1 },
    ]);
  });
});
