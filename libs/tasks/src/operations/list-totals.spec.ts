import type { ListedTasks } from '@baton/database';
import { ListTotals } from './list-totals.js';

const LISTED: ListedTasks = { tenantId: 'tenant', agentId: 'echo' };

describe('the total of a long list', () => {
  let counts: ListedTasks[];
  let totals: ListTotals;
  beforeEach(() => {
    counts = [];
    const count = async (listed: ListedTasks) => 20_000 + counts.push(listed);
    totals = new ListTotals({ count } as never);
  });
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  it('is counted once for all who turn its pages at a time', async () => {
    expect(await Promise.all([totals.of(LISTED), totals.of({ ...LISTED })])).toEqual([20_001, 20_001]);
    expect([totals.known(LISTED), await totals.of(LISTED)]).toEqual([20_001, 20_001]);
    expect(counts).toEqual([LISTED]);
  });

  it('is its own for each list', async () => {
    expect(totals.known(LISTED)).toBeUndefined();
    await totals.of(LISTED);
    expect(await totals.of({ ...LISTED, tenantId: 'other' })).toBe(20_002);
    expect(await totals.of({ ...LISTED, since: new Date(0) })).toBe(20_003);
  });

  it('is counted again when it is ten seconds old', async () => {
    jest.useFakeTimers({ doNotFake: ['performance'] });
    jest.spyOn(performance, 'now').mockImplementation(() => Date.now());
    await totals.of(LISTED);
    jest.advanceTimersByTime(10_001);
    expect(await totals.of(LISTED)).toBe(20_002);
  });
});
