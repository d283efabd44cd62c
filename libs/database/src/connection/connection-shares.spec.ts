import { ConnectionShares } from './connection-shares.js';

const PLATFORM = 'platform';

describe('the shares of connections', () => {
  let shares: ConnectionShares;
  let got: string[];

  beforeEach(() => {
    jest.useFakeTimers();
    shares = ConnectionShares.ofPool(4, 1_000, PLATFORM);
    got = [];
  });
  afterEach(() => jest.useRealTimers());

  const take = (holder: string, count = 1): Promise<string>[] =>
    Array.from({ length: count }, () =>
      shares.take(holder).then(
        () => {
          got.push(holder);
          return 'taken';
        },
        (error: unknown) => (error as Error).message,
      ),
    );
  const settle = () => jest.advanceTimersByTimeAsync(0);

  it('leave half of the connections to others, for any demand of one tenant', async () => {
    void take('busy', 100);
    await settle();
    expect(got).toEqual(['busy', 'busy']);
    void take('other', 2);
    await settle();
    expect(got).toEqual(['busy', 'busy', 'other', 'other']);
    expect(shares.waiting).toEqual({ all: 0, share: 98 });
  });

  it('come to the platform, then to the tenants that have the fewest', async () => {
    void take('a', 5);
    void take('b', 5);
    void take('late', 2);
    void take(PLATFORM);
    await settle();
    expect(shares.waiting).toEqual({ all: 3, share: 6 });
    got = [];
    for (const holder of ['a', 'b', 'a', 'b']) {
      shares.give(holder);
      await settle();
    }
    expect(got).toEqual([PLATFORM, 'late', 'a', 'b']);
  });

  it('leave an eighth to the platform, however many tenants wait', async () => {
    shares = ConnectionShares.ofPool(8, 1_000, PLATFORM);
    for (const tenant of ['a', 'b', 'c']) void take(tenant, 4);
    await settle();
    expect(got).toEqual(['a', 'a', 'a', 'a', 'b', 'b', 'b']);
    got = [];
    void take(PLATFORM);
    await settle();
    expect(got).toEqual([PLATFORM]);
    // What it gives back stays its own.
    shares.give(PLATFORM);
    await settle();
    expect(got).toEqual([PLATFORM]);
    shares.give('a');
    await settle();
    expect(got).toEqual([PLATFORM, 'c']);
  });

  it('do not bound the platform', async () => {
    void take(PLATFORM, 4);
    await settle();
    expect(got).toHaveLength(4);
  });

  it('end the wait like the pool', async () => {
    const third = take('busy', 3)[2];
    await jest.advanceTimersByTimeAsync(1_000);
    expect(await third).toBe('timeout exceeded when trying to connect');
    shares.give('busy');
    void take('busy');
    await settle();
    expect(got).toEqual(['busy', 'busy', 'busy']);
  });

  it('forget a holder that has nothing', async () => {
    void take('busy', 3);
    await settle();
    for (let i = 0; i < 3; i++) {
      shares.give('busy');
      await settle();
    }
    expect((shares as unknown as { shares: Map<string, unknown> }).shares.size).toBe(0);
  });

  it('take all connections of a pool that is too small for shares', async () => {
    shares = ConnectionShares.ofPool(2, 1_000, PLATFORM);
    void take('one', 2);
    await settle();
    expect(got).toHaveLength(2);
  });

  it.each([
    { pool: 16, ofTenant: 2, ofAll: 4 },
    { pool: 8, ofTenant: 1, ofAll: 2 },
    { pool: 1, ofTenant: 1, ofAll: 1 },
  ])('of lists in a pool of $pool are $ofAll, and $ofTenant of one tenant', async (row) => {
    shares = ConnectionShares.ofLists(row.pool, 1_000);
    void take('busy', 10);
    await settle();
    expect(got).toHaveLength(row.ofTenant);
    for (const tenant of ['a', 'b', 'c', 'd']) void take(tenant);
    await settle();
    expect(got).toHaveLength(row.ofAll);
  });
});
