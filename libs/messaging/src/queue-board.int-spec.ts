import { randomUUID } from 'node:crypto';
import { DRIVERS } from '../../../test/support/index.js';
import { Installation, someRun } from './installation.fixture.js';
import type { Messaging } from './messaging.js';

interface ShownQueue {
  name: string;
  readOnlyMode: boolean;
  counts: Record<string, number>;
  jobs: { id: string; name: string; data: unknown }[];
}

describe.each(DRIVERS)('Bull Board on %s', (driver) => {
  let installation: Installation;
  let messaging: Messaging;
  beforeAll(async () => {
    installation = await Installation.on(driver);
    messaging = await installation.process();
  });
  afterAll(() => installation.close());

  async function queues(query: Record<string, string> = {}): Promise<ShownQueue[]> {
    const answer = await messaging.readBoard('/api/queues', query);
    expect(answer?.status).toBe(200);
    return (answer!.body as { queues: ShownQueue[] }).queues;
  }

  it('shows the queues, and the jobs of one with ids alone', async () => {
    const run = someRun();
    await messaging.enqueueRuns([run]);
    const names = (await queues()).map(({ name }) => name);
    expect(names.map((name) => name.replace(/^.*-/, ''))).toEqual(['runs', 'reserved', 'ticks', 'pushes']);
    const [runs] = await queues({ activeQueue: names[0]!, status: 'waiting', page: '1', jobsPerPage: '10' });
    expect(runs).toMatchObject({ readOnlyMode: true, counts: { waiting: 1 } });
    expect(runs!.jobs).toMatchObject([{ id: `${run.runId}-0`, name: 'run', data: run }]);
    const job = await messaging.readBoard(`/api/queues/${names[0]}/${run.runId}-0`, {});
    expect(job).toMatchObject({ status: 200, body: { job: { data: run } } });
    expect(await messaging.readBoard(`/api/queues/${names[0]}/nothing`, {})).toMatchObject({ status: 404 });
  });

  it('shows some of the schedules, however many there are', async () => {
    const tenantId = randomUUID();
    const at = new Date(Date.now() + 3_600_000);
    const ids = Array.from({ length: 120 }, () => randomUUID());
    // Not all at once: each has a limit of time, and a busy machine makes them wait for each other.
    for (const scheduleId of ids) await messaging.setTicks({ tenantId, scheduleId, at, timeZone: 'UTC' });
    const answer = await messaging.readBoard('/api/job-schedulers', {});
    const { schedulers } = answer!.body as { schedulers: { id: string }[] };
    expect(schedulers).toHaveLength(100);
    expect(ids).toEqual(expect.arrayContaining(schedulers.map(({ id }) => id)));
    for (const scheduleId of ids) await messaging.stopTicks(scheduleId);
  });

  it('has no path that writes', async () => {
    const run = someRun();
    await messaging.enqueueRuns([run]);
    const [{ name } = { name: '' }] = await queues();
    const job = `/api/queues/${name}/${run.runId}-0`;
    for (const path of [
      `${job}/clean`,
      `${job}/promote`,
      `${job}/retry/failed`,
      `/api/queues/${name}/empty`,
    ]) {
      expect([path, (await messaging.readBoard(path, {}))?.status ?? 404]).toEqual([path, 404]);
    }
    expect(await messaging.readBoard(job, {})).toMatchObject({ status: 200 });
  });
});
