import { openStores, sql, startTask, type Stores } from '../stores.fixture.js';
import { InstallationStore } from './installation.store.js';

let stores: Stores;
let installation: InstallationStore;
beforeAll(async () => {
  stores = await openStores(2);
  installation = new InstallationStore(stores.database);
});
afterAll(() => stores.close());

it('has no backup, no paused schedule and no late run at first', async () => {
  const { bytes, ...state } = await installation.state();
  expect(bytes).toBeGreaterThan(1_000_000);
  expect(state).toEqual({
    backupAgeSeconds: undefined,
    pausedSchedules: 0,
    sleepOverdueSeconds: 0,
    parkedRuns: 0,
    endedNext: 0,
  });
});

it('reads the age of the last backup', async () => {
  for (const hours of [30, 2])
    await installation.noteBackup(new Date(Date.now() - hours * 3_600_000).toISOString());
  expect((await installation.state()).backupAgeSeconds).toBeCloseTo(2 * 3600, -2);
});

it('reads for how long a sleeping run is overdue', async () => {
  await startTask(stores);
  const sleep = (until: string): Promise<object[]> =>
    sql(stores, `UPDATE runs SET state = 'suspended', not_before = now() + interval '${until}'`);
  const overdue = async (): Promise<number> => (await installation.state()).sleepOverdueSeconds;
  await sleep('5 minutes');
  expect(await overdue()).toBe(0);
  await sleep('-5 minutes');
  expect(await overdue()).toBeCloseTo(300, -2);
  // A task that asks may be more overdue.
  await sql(stores, `UPDATE tasks SET wakes_at = now() - interval '20 minutes'`);
  expect(await overdue()).toBeCloseTo(1200, -2);
});
