import { loadEnvironment } from './environment.js';
import { defaultLimitsOf } from './default-limits.js';
import { DEFAULT_LIMITS, LIMIT_NAMES, storedLimits } from './limits.js';

describe('limits that are stored', () => {
  it.each([
    [3_000_000_000, 2_147_483_647],
    [Infinity, 2_147_483_647],
    [-5, 1],
    [0, 1],
    [2.7, 2],
    [7, 7],
    [null, null],
    [Number.NaN, undefined],
    ['3', undefined],
    [{}, undefined],
  ])('runsAtOnce: %p counts as %p', (stored, counts) => {
    expect(storedLimits({ runsAtOnce: stored }).runsAtOnce).toBe(counts);
  });

  it('count as none if they are no object, and others than the known are left out', () => {
    for (const stored of [undefined, null, 'x', 3, []]) expect(storedLimits(stored)).toEqual({});
    expect(storedLimits({ other: 1, weight: null, storedBytes: 999_999_999_999_999 })).toEqual({
      storedBytes: 999_999_999_999_999,
    });
  });

  it('stay what an earlier release accepted above the range', () => {
    expect(storedLimits({ webhooks: 5_000, retentionDays: 1e300 })).toEqual({
      webhooks: 5_000,
      retentionDays: 99_999,
    });
  });
});

describe('limits of the environment', () => {
  const base = { DATABASE_URL: 'postgres://u@h/baton' };

  it.each(['LIMIT_RUNS_AT_ONCE', 'LIMIT_TASKS_WAITING'])(
    '%s has the range of the counts in Postgres',
    (name) => {
      expect(() => loadEnvironment({ ...base, [name]: '2147483647' })).not.toThrow();
      expect(() => loadEnvironment({ ...base, [name]: '5000000000' })).toThrow(
        `${name} is "5000000000": set it to a whole number from 1 to 2147483647`,
      );
    },
  );

  it('have safe defaults, which `none` lifts', () => {
    const { defaultLimits } = loadEnvironment(base);
    expect(defaultLimits).toEqual(DEFAULT_LIMITS);
    const off = LIMIT_NAMES.filter((name) => defaultLimits[name] === null);
    expect(off).toEqual(['runsAtOnce', 'bodyBytes']);
    const lifted = loadEnvironment({ ...base, LIMIT_STORED_BYTES: 'none', LIMIT_RETENTION_DAYS: 'none' });
    expect(lifted.defaultLimits).toEqual({ ...DEFAULT_LIMITS, storedBytes: null, retentionDays: null });
  });

  it('delete no tasks of a tenant that predates the default retention, until the operator sets one', () => {
    const daysOf = (source: Record<string, string>, predatesRetention: boolean) =>
      defaultLimitsOf(loadEnvironment({ ...base, ...source }), { predatesRetention }).retentionDays;
    expect([daysOf({}, false), daysOf({}, true), daysOf({ LIMIT_RETENTION_DAYS: '' }, true)]).toEqual([
      90,
      null,
      null,
    ]);
    expect([
      daysOf({ LIMIT_RETENTION_DAYS: '7' }, true),
      daysOf({ LIMIT_RETENTION_DAYS: '7' }, false),
    ]).toEqual([7, 7]);
  });
});
