import type { Agent } from '@baton/a2a';
import { loadEnvironment } from '@baton/config';
import {
  Database,
  type DueSchedule,
  type Schedule,
  ScheduleStore,
  TaskStore,
  PLATFORM_ACTOR,
} from '@baton/database';
import { Logger, Metrics, Tracing } from '@baton/telemetry';
import { randomUUID } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import type { AgentDirectory } from '../catalog/agent-directory.js';
import type { TurnEnds } from '../turns/turn-ends.js';
import { TurnAcceptance } from '../turns/turn-acceptance.js';
import { scheduleOf } from './schedule.fixture.js';
import { ScheduleFiring, taskIdAt } from './schedule-firing.js';
import { ScheduleAdvancer } from './schedule-advancer.js';

const ECHO = { id: 'echo', slug: 'echo', definition: {} } as Agent;

let testDatabase: TestDatabase;
let database: Database;
let store: ScheduleStore;
let tenantId: string;
let agents: Agent[];
let maxWaiting: number | null;
let handed: string[];
/** Set while Postgres is away for those that make tasks. */
let outage: Error | undefined;
let canceled: string[];
let metrics: Metrics;

beforeAll(async () => {
  testDatabase = await createDatabase();
  database = new Database({ url: testDatabase.url, poolSize: 8 });
  store = new ScheduleStore(database);
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

beforeEach(async () => {
  tenantId = randomUUID();
  metrics = new Metrics();
  [agents, maxWaiting, handed, canceled, outage] = [[ECHO], null, [], [], undefined];
  await query('DELETE FROM schedules');
  await query(`INSERT INTO tenants (id, slug) VALUES ('${tenantId}', '${tenantId}')`);
});

const query = (text: string): Promise<object[]> => database.systemQuery({ text }, []);

/** What a worker advances schedules with; queue and catalog are the test's. */
function worker(): ScheduleAdvancer {
  const environment = loadEnvironment({ DATABASE_URL: testDatabase.url, SCHEDULE_LATE_MS: '60000' });
  const dispatcher = {
    quotaFor: async () => {
      if (outage) throw outage;
      return { maxInFlight: maxWaiting === null ? null : 0, maxWaiting, exact: maxWaiting !== null };
    },
    enqueue: async ({ taskId }: { taskId: string }) => void handed.push(taskId),
  };
  const eager = {
    claimFor: () => undefined,
    send: async () => undefined,
  };
  const firing = new ScheduleFiring(
    { find: async () => agents[0] } as unknown as AgentDirectory,
    new TurnAcceptance(new TaskStore(database), dispatcher, eager, environment, new Tracing()),
    {
      cancel: async (_: string, __: null, taskId: string) => canceled.push(taskId),
    } as unknown as TurnEnds,
  );
  return new ScheduleAdvancer(store, firing, metrics, environment, Logger.silent());
}

/** A schedule that was due that long ago. */
async function due(overrides: Partial<Schedule> = {}, ago = 1_000): Promise<Schedule> {
  const nextAt = new Date(Date.now() - ago);
  const spec = scheduleOf({ tenantId, id: randomUUID(), cron: null, at: nextAt, nextAt, ...overrides });
  return store.create(spec, PLATFORM_ACTOR);
}
/** Takes what is due, with a lease of no time. */
const take = async (): Promise<DueSchedule> => (await store.takeDue(0, 0, 1))[0]!;
const read = async ({ id }: Schedule): Promise<Schedule> => (await store.find(tenantId, id))!;
const tasks = async (): Promise<string[]> => {
  const rows = await query(`SELECT id FROM tasks WHERE tenant_id = '${tenantId}'`);
  return rows.map((row) => (row as { id: string }).id);
};

describe('a time of a schedule', () => {
  it('makes one task, however many workers advance it at once', async () => {
    const schedule = await due();
    const taken: DueSchedule[] = [];
    while (taken.length < 6) taken.push(await take());
    await Promise.all(taken.map((each) => worker().advance(each)));
    const taskId = taskIdAt(schedule, schedule.nextAt!);
    expect(await tasks()).toEqual([taskId]);
    expect(handed).toEqual([taskId]);
    expect(await read(schedule)).toMatchObject({
      fired: 1,
      nextAt: null,
      pendingAt: null,
      lastTaskId: taskId,
      lastTaskState: 1,
      last: { outcome: 'started', dueAt: schedule.nextAt },
    });
  });

  it('is fired by a later worker if Postgres is away, and is not refused', async () => {
    const schedule = await due();
    outage = Object.assign(new Error('gone'), { code: 'ECONNRESET' });
    await expect(worker().advance(await take())).rejects.toBe(outage);
    expect(await read(schedule)).toMatchObject({ pendingAt: schedule.nextAt, last: null });
    outage = undefined;
    await worker().advance(await take());
    expect(await tasks()).toEqual([taskIdAt(schedule, schedule.nextAt!)]);
    expect(await read(schedule)).toMatchObject({ fired: 1, last: { outcome: 'started' } });
  });

  it.each(['before', 'after'])(
    'makes one task when its worker dies %s it was made, though it may not be made any more',
    async (when) => {
      const schedule = await due();
      const first = await take();
      const version = await store.begin(first.schedule);
      const lost = { ...first, schedule: { ...first.schedule, version: version! } };
      // Its note of the task does not come through: the schedule has another version by then.
      if (when === 'after') {
        await store.wait(lost.schedule, 0);
        await worker().advance({ ...lost, schedule: { ...lost.schedule, pendingAt: schedule.nextAt } });
        agents = [];
      }
      const again = await take();
      expect(again.schedule).toMatchObject({ pendingAt: schedule.nextAt, last: null });
      await worker().advance(again);
      expect(await tasks()).toEqual([taskIdAt(schedule, schedule.nextAt!)]);
      expect(await read(schedule)).toMatchObject({ fired: 1, last: { outcome: 'started' } });
    },
  );

  it('is refused, and the next one comes, when the agent is gone or disabled', async () => {
    const schedule = await due({ cron: '0 0 * * *', at: null });
    agents = [];
    await worker().advance(await take());
    const gone = { outcome: 'refused', reason: 'the agent "echo" does not exist' };
    expect(await read(schedule)).toMatchObject({ fired: 0, last: gone, nextAt: expect.any(Date) as Date });
    const other = await due({ name: 'other' });
    agents = [{ ...ECHO, status: 'disabled' }];
    await worker().advance(await take());
    expect(await read(other)).toMatchObject({ last: { reason: 'the agent "echo" is disabled' } });
    expect(await tasks()).toEqual([]);
  });

  it('is refused by a limit of its tenant, which it names', async () => {
    const schedule = await due();
    maxWaiting = 0;
    await worker().advance(await take());
    const reason = expect.stringContaining('the limit tasksWaiting of this tenant is reached') as string;
    expect(await read(schedule)).toMatchObject({ last: { outcome: 'refused', reason } });
    expect(await tasks()).toEqual([]);
    expect((await metrics.render()).body).toMatch(/^baton_schedule_firings_total\{outcome="refused"\} 1$/m);
  });

  it('that was missed makes one task, or none, and the next is one to come', async () => {
    const hour = 3_600_000;
    const once = await due({ cron: '* * * * *', at: null }, hour);
    await worker().advance(await take());
    expect(await read(once)).toMatchObject({ fired: 1, last: { outcome: 'started', dueAt: once.nextAt } });
    const skipping = await due({ name: 'skipping', cron: '* * * * *', at: null, missed: 'skip' }, hour);
    await worker().advance(await take());
    expect(await read(skipping)).toMatchObject({ fired: 0, last: { outcome: 'missed' } });
    for (const { id } of [once, skipping]) {
      const { nextAt } = (await store.find(tenantId, id))!;
      expect(nextAt!.getTime()).toBeGreaterThan(Date.now());
    }
  });

  it.each(['same', 'new'] as const)('makes its tasks in a context: %s', async (context) => {
    const schedule = await due({ context, overlap: 'allow', cron: '* * * * * *', at: null });
    await worker().advance(await take());
    await query(`UPDATE schedules SET next_at = now() - interval '1 s', wake_at = now()`);
    await worker().advance(await take());
    const rows = await query(`SELECT context_id AS id FROM tasks WHERE tenant_id = '${tenantId}'`);
    const contexts = (rows as { id: string }[]).map(({ id }) => id);
    expect(contexts).toHaveLength(2);
    expect(new Set(contexts).size).toBe(context === 'same' ? 1 : 2);
    expect(contexts.includes(schedule.id)).toBe(context === 'same');
  });

  it('ends the task before only when the new one is there', async () => {
    const policy = { overlap: 'cancel-previous', cron: '* * * * * *', at: null } as const;
    const schedule = await due(policy);
    await worker().advance(await take());
    const [first] = await tasks();
    maxWaiting = 0;
    await worker().advance(await take());
    expect([canceled, (await read(schedule)).last?.outcome]).toEqual([[], 'refused']);
    maxWaiting = null;
    await query(`UPDATE schedules SET next_at = now() - interval '1 s', wake_at = now()`);
    await worker().advance(await take());
    expect(canceled).toEqual([first]);
  });

  it('is followed by the right one where clocks change by half an hour, and 20 of them delay no other', async () => {
    const [change, times] = [new Date('2027-04-03T15:00:00Z'), { at: null, timeZone: 'Australia/Lord_Howe' }];
    const dueAt = new Date('2027-04-03T13:00:00Z');
    const schedules: Schedule[] = [];
    for (let index = 0; index < 20; index++) {
      const spec = {
        ...times,
        cron: '*/20 0,1,2,3 * * *',
        nextAt: dueAt,
        name: `s${index}`,
        id: randomUUID(),
      };
      schedules.push(await store.create(scheduleOf({ tenantId, ...spec }), PLATFORM_ACTOR));
    }
    const before = process.cpuUsage();
    for (const schedule of schedules) await worker().advance({ schedule, now: dueAt });
    const { user } = process.cpuUsage(before);
    for (const schedule of schedules) {
      expect((await read(schedule)).nextAt).toEqual(new Date('2027-04-03T13:20:00Z'));
    }
    // The search of cron-parser took half a second for each.
    expect(user).toBeLessThan(20 * 200_000);
    const after = { ...schedules[0]!, nextAt: change, version: (await read(schedules[0]!)).version };
    await worker().advance({ schedule: after, now: change });
    expect((await read(after)).nextAt).toEqual(new Date('2027-04-03T15:30:00Z'));
  });

  it('is fired once and ends in a pause when the next one cannot be computed', async () => {
    const schedule = await due({ cron: '59 59 23 * 2 1#5', at: null });
    await worker().advance(await take());
    const reason = expect.stringMatching(/has no time within the next eight years/) as string;
    const paused = { paused: true, pausedReason: reason, nextAt: null, fired: 1 };
    expect(await read(schedule)).toMatchObject({ ...paused, last: { outcome: 'started' } });
    expect(await store.takeDue(0, 0, 1)).toEqual([]);
  });

  it('is tried once, not for ever, when its schedule cannot be advanced', async () => {
    const schedule = await due();
    const failing = worker();
    Object.assign(failing, { environment: undefined });
    await failing.advance(await take());
    const last = { outcome: 'refused', reason: 'an internal error of the platform' };
    expect(await read(schedule)).toMatchObject({ paused: true, pausedReason: last.reason, last });
    expect(await store.takeDue(0, 0, 1)).toEqual([]);
  });

  it('that was missed is counted, and so are those after it', async () => {
    const counted = await due({ cron: '* * * * *', at: null }, 30 * 60_000);
    await worker().advance(await take());
    const { fired, passed } = await read(counted);
    expect(fired).toBe(1);
    expect(passed.missed).toBeGreaterThanOrEqual(29);
    expect((await metrics.render()).body).toMatch(
      new RegExp(`^baton_schedule_firings_total\\{outcome="missed"\\} ${passed.missed}$`, 'm'),
    );
  });
});
