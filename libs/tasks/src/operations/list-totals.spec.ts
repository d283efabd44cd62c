import type { CountCursor, ListedTasks } from '@baton/database';
import { Logger } from '@baton/telemetry';
import { ListTotals } from './list-totals.js';

const LISTED: ListedTasks = { tenantId: 'tenant', agentId: 'echo' };

/** A store whose lists are 20,001 tasks long, then one more each time; two slices each. */
class CountingStore {
  readonly begun: ListedTasks[] = [];
  failures = 0;
  /** A second slice comes when this does. */
  gate: Promise<void> = Promise.resolve();

  async countSlice(listed: ListedTasks, { state }: CountCursor) {
    if (this.failures-- > 0) throw new Error('statement timeout');
    if (state === 0) {
      this.begun.push(listed);
      return { tasks: 20_000, cursor: { state: 1 } };
    }
    await this.gate;
    return { tasks: this.begun.length };
  }
}

describe('the total of a long list', () => {
  let store: CountingStore;
  let totals: ListTotals;
  beforeEach(() => {
    store = new CountingStore();
    totals = new ListTotals(store as never, Logger.silent());
  });
  afterEach(() => {
    jest.restoreAllMocks();
    jest.useRealTimers();
  });

  it('is counted once for all who turn its pages at a time', async () => {
    expect(await Promise.all([totals.total(LISTED), totals.total({ ...LISTED })])).toEqual([20_001, 20_001]);
    expect([totals.known(LISTED), await totals.total(LISTED)]).toEqual([20_001, 20_001]);
    expect(store.begun).toEqual([LISTED]);
  });

  it('is its own for each list', async () => {
    expect(totals.known(LISTED)).toBeUndefined();
    await totals.total(LISTED);
    expect(await totals.total({ ...LISTED, tenantId: 'other' })).toBe(20_002);
    expect(await totals.total({ ...LISTED, since: new Date(0) })).toBe(20_003);
  });

  it('is counted again when it is ten seconds old', async () => {
    jest.useFakeTimers({ doNotFake: ['performance'] });
    jest.spyOn(performance, 'now').mockImplementation(() => Date.now());
    await totals.total(LISTED);
    jest.advanceTimersByTime(10_001);
    expect(totals.known(LISTED)).toBeUndefined();
    expect(await totals.total(LISTED)).toBe(20_002);
  });

  it('is as many as are counted by then for a list that has waited long enough, and the whole one later', async () => {
    let open: () => void = () => undefined;
    store.gate = new Promise((resolve) => (open = resolve));
    expect(await totals.total(LISTED)).toBe(20_000);
    expect(totals.known(LISTED)).toBeUndefined();
    open();
    expect(await totals.total(LISTED)).toBe(20_001);
    expect(store.begun).toEqual([LISTED]);
  });

  it('does not fail when it cannot be counted', async () => {
    jest.useFakeTimers({ doNotFake: ['performance'] });
    jest.spyOn(performance, 'now').mockImplementation(() => Date.now());
    store.failures = 1;
    expect(await totals.total(LISTED)).toBe(10_001);
    expect([await totals.total(LISTED), store.begun]).toEqual([10_001, []]);
    jest.advanceTimersByTime(10_001);
    expect(await totals.total(LISTED)).toBe(20_001);
  });
});
