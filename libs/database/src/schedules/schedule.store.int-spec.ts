import { PLATFORM_ACTOR } from '../audit/audit-records.js';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { ScheduleStore } from './schedule.store.js';
import type { Schedule, ScheduleSpec } from './schedule-records.js';
import { newTask, openStores, type Stores, sql, textMessage } from '../stores.fixture.js';

const SAID = textMessage('hello \0');

let stores: Stores;
let schedules: ScheduleStore;
let tenantId: string;

beforeAll(async () => {
  stores = await openStores();
  schedules = new ScheduleStore(stores.database);
});
afterAll(() => stores.close());

beforeEach(async () => {
  tenantId = randomUUID();
  await sql(stores, `DELETE FROM schedules`);
  await sql(stores, `INSERT INTO tenants (id, slug) VALUES ('${tenantId}', '${tenantId}')`);
});

const ago = (ms: number): Date => new Date(Date.now() - ms);
const spec = (overrides: Partial<ScheduleSpec> = {}): ScheduleSpec => ({
  name: 'report',
  agent: 'echo',
  message: SAID,
  cron: '* * * * *',
  at: null,
  timeZone: 'Europe/Berlin',
  overlap: 'skip',
  missed: 'fire-once',
  context: 'new',
  startsAt: null,
  endsAt: null,
  maxCount: null,
  paused: false,
  ...overrides,
});
const make = (nextAt: Date | null, overrides: Partial<ScheduleSpec> = {}): Promise<Schedule> =>
  schedules.create({ tenantId, id: randomUUID(), nextAt, ...spec(overrides) }, PLATFORM_ACTOR);
const read = async ({ id }: Schedule): Promise<Schedule> => (await schedules.find(tenantId, id))!;
const started = (dueAt: Date) => ({ dueAt, outcome: 'started' as const, reason: null });

describe('schedules', () => {
  it('are read as they were written, by id and by name', async () => {
    const at = ago(0);
    const made = await make(at, { at, cron: null, maxCount: 3 });
    expect(made).toMatchObject({
      ...spec({ at, cron: null, maxCount: 3 }),
      nextAt: at,
      fired: 0,
      last: null,
    });
    expect(await schedules.find(tenantId, made.id)).toEqual(made);
    expect(await schedules.find(tenantId, 'report')).toEqual(made);
    expect(await schedules.find(randomUUID(), made.id)).toBeUndefined();
  });

  it('have a name of their own in their tenant', async () => {
    const made = await make(null);
    await make(null, { name: 'other' });
    await expect(make(null)).rejects.toThrow('The schedule "report" already exists');
    await expect(schedules.change(made, spec({ name: 'other' }), null, PLATFORM_ACTOR)).rejects.toThrow(
      '"other" already',
    );
  });

  it('are listed by name page by page, without their messages, and only those of some agents', async () => {
    for (const name of ['c', 'a', 'd', 'b']) await make(null, { name, agent: name < 'c' ? 'one' : 'two' });
    const names = async (...page: [limit: number, after?: string, agents?: string[]]) => {
      const [limit, after, agents] = page;
      const found = await schedules.list(tenantId, { limit, after }, agents);
      for (const schedule of found) expect(schedule).toMatchObject({ message: { parts: [] } });
      return found.map(({ name }) => name);
    };
    expect(await names(2)).toEqual(['a', 'b']);
    // One that comes or goes before the cursor moves no other.
    await make(null, { name: 'aa', agent: 'one' });
    await schedules.remove(tenantId, (await schedules.find(tenantId, 'b'))!.id, PLATFORM_ACTOR);
    expect(await names(2, 'b')).toEqual(['c', 'd']);
    expect(await names(2, 'd')).toEqual([]);
    expect(await names(10, '', ['one', 'none'])).toEqual(['a', 'aa']);
    expect((await schedules.list(tenantId)).map(({ name }) => name)).toEqual(['a', 'aa', 'c', 'd']);
  });

  it('are refused when the tenant has as many as it may have', async () => {
    await sql(stores, `UPDATE tenants SET limits = '{"schedules": 2}' WHERE id = '${tenantId}'`);
    const made = await Promise.allSettled(['a', 'b', 'c', 'd'].map((name) => make(null, { name })));
    const refused = made.filter((one) => one.status === 'rejected');
    expect(refused).toHaveLength(2);
    for (const { reason } of refused) {
      expect(reason).toMatchObject({ name: 'LimitReachedError', limit: 'schedules', max: 2 });
    }
    expect(await schedules.list(tenantId)).toHaveLength(2);
  });

  it('are changed only as they were read', async () => {
    const made = await make(null);
    const changed = await schedules.change(made, spec({ agent: 'index' }), null, PLATFORM_ACTOR);
    expect(changed).toMatchObject({ agent: 'index', version: made.version + 1 });
    expect(await schedules.change(made, spec({ agent: 'late' }), null, PLATFORM_ACTOR)).toBeUndefined();
    expect(await read(made)).toMatchObject({ agent: 'index' });
  });
});

describe('a schedule that is due', () => {
  it.each([
    ['cron', {}],
    ['at', { cron: null, at: ago(1_000) }],
  ])('is found by the sweep, when it has %s', async (_kind, overrides) => {
    const found = async () => (await stores.runs.findWork(60_000)).dueSchedules;
    await make(new Date(Date.now() + 60_000), { ...overrides, name: 'later' });
    expect(await found()).toBe(false);
    await make(ago(1_000), overrides);
    expect(await found()).toBe(true);
  });

  it('is taken by one of many, for a while', async () => {
    const made = await make(ago(10));
    await make(new Date(Date.now() + 60_000), { name: 'later' });
    const taken = await Promise.all(Array.from({ length: 8 }, () => schedules.takeDue(60_000, 0, 10)));
    expect(taken.flat().map(({ schedule }) => schedule.id)).toEqual([made.id]);
  });

  it('is taken again when that while is over', async () => {
    await make(ago(10));
    await schedules.takeDue(0, 0, 10);
    expect(await schedules.takeDue(60_000, 0, 10)).toHaveLength(1);
  });

  it('is left to the queue until it is late', async () => {
    await make(ago(1_000));
    expect(await schedules.takeDue(60_000, 5_000, 10)).toEqual([]);
    expect(await schedules.takeDue(60_000, 500, 10)).toHaveLength(1);
  });

  it('is taken at the time of the queue, though our clock is a little behind', async () => {
    const [dueAt, farAt] = [new Date(Date.now() + 2_000), new Date(Date.now() + 60_000)];
    const [made, far] = [await make(dueAt), await make(farAt, { name: 'far' })];
    const early = await schedules.takeOne(made, ago(0), 60_000);
    expect(early).toBeUndefined();
    expect(await schedules.takeOne(made, dueAt, 60_000)).toBeDefined();
    expect(await schedules.takeOne(made, dueAt, 60_000)).toBeUndefined();
    expect(await schedules.takeOne(far, farAt, 60_000)).toBeUndefined();
  });

  it('comes with the state of its last task', async () => {
    const input = newTask({ tenantId });
    await stores.tasks.create(input);
    const made = await make(ago(10));
    await schedules.note(made, started(ago(0)), input.task.id, PLATFORM_ACTOR);
    const [taken] = await schedules.takeDue(60_000, 0, 10);
    expect(taken?.schedule).toMatchObject({ lastTaskId: input.task.id, lastTaskState: 1 });
  });

  it('comes with its last ten tasks, the newest first, as far as they are there and its tenant has them', async () => {
    const made = await make(ago(10));
    const ids: string[] = [];
    for (let n = 0; n < 12; n += 1) {
      const input = newTask({ tenantId });
      if (n !== 7) await stores.tasks.create(input);
      ids.unshift(input.task.id);
      await schedules.note(made, started(ago(0)), input.task.id, PLATFORM_ACTOR);
      await schedules.note(made, { ...started(ago(0)), outcome: 'skipped' }, null, PLATFORM_ACTOR);
    }
    const foreign = newTask({ tenantId: randomUUID() });
    await stores.tasks.create(foreign);
    await schedules.note(made, started(ago(0)), foreign.task.id, PLATFORM_ACTOR);
    const { recentTasks } = await read(made);
    expect(recentTasks.map(({ taskId }) => taskId)).toEqual(ids.slice(0, 9).filter((id) => id !== ids[4]));
    expect(recentTasks[0]).toMatchObject({ state: 1, createdAt: expect.any(Date) as Date });
    const [taken] = await schedules.takeDue(0, 0, 10);
    const key = { ...taken!.schedule, version: (await schedules.begin(taken!.schedule))! };
    const result = { ...started(ago(0)), nextAt: null, pauseReason: null };
    const passed = { skipped: 0, missed: 0, refused: 0 };
    await schedules.finish(key, { ...result, taskId: ids.at(-1)!, passed });
    expect((await read(made)).recentTasks[0]?.taskId).toBe(ids.at(-1));
  });

  it('is settled once, and then due at its next time', async () => {
    const [dueAt, nextAt, taskId] = [ago(10), new Date(Date.now() + 60_000), randomUUID()];
    const made = await make(dueAt);
    const [taken] = await schedules.takeDue(60_000, 0, 10);
    const version = await schedules.begin(taken!.schedule);
    expect(await read(made)).toMatchObject({ pendingAt: dueAt, nextAt: dueAt, last: null });
    expect(await schedules.begin(taken!.schedule)).toBeUndefined();
    const passed = { skipped: 0, missed: 2, refused: 1 };
    const result = { ...started(dueAt), taskId, nextAt, passed, pauseReason: null };
    expect(await schedules.finish(taken!.schedule, result)).toBe(false);
    await schedules.wait(taken!.schedule, 60_000);
    await schedules.pause(taken!.schedule, 'too late');
    expect(await read(made)).toMatchObject({ pendingAt: dueAt, fired: 0, isWaiting: false, paused: false });
    const key = { ...taken!.schedule, version: version! };
    expect(await schedules.finish(key, result)).toBe(true);
    expect(await schedules.finish(key, result)).toBe(false);
    const last = { dueAt, outcome: 'started' };
    const settled = { pendingAt: null, fired: 1, passed, nextAt, last, lastTaskId: taskId };
    expect(await read(made)).toMatchObject({ ...settled, paused: false, pausedReason: null });
  });

  it('changes no other of its tenant', async () => {
    const [made, other] = [await make(ago(10)), await make(ago(20), { name: 'other' })];
    const passed = { skipped: 0, missed: 0, refused: 0 };
    await schedules.takeOne(made, new Date(), 60_000);
    const taken = await read(made);
    const version = (await schedules.begin(taken))!;
    const result = { ...started(ago(10)), taskId: randomUUID(), nextAt: ago(5), passed, pauseReason: null };
    expect(await schedules.finish({ ...taken, version }, result)).toBe(true);
    await schedules.wait(await read(made), 60_000);
    await schedules.note(made, started(ago(0)), randomUUID(), PLATFORM_ACTOR);
    await schedules.pause(await read(made), 'no such time zone');
    expect(await read(made)).toMatchObject({ fired: 1, paused: true, passed: { refused: 1 } });
    expect(await read(other)).toEqual(other);
  });

  it('is left alone while another transaction has it', async () => {
    const made = await make(ago(10));
    await stores.database.inTenant(tenantId, async (transaction) => {
      await transaction.query({ text: 'SELECT FROM schedules FOR UPDATE' }, []);
      let taken: unknown;
      void Promise.all([schedules.takeOne(made, new Date(), 60_000), schedules.takeDue(60_000, 0, 10)]).then(
        (both) => (taken = both),
      );
      const waits = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      while (taken === undefined && (await sql(stores, waits)).length === 0) await delay(5);
      expect(taken).toEqual([undefined, []]);
    });
    expect(await schedules.takeOne(made, new Date(), 60_000)).toBeDefined();
  });

  it('is paused with its reason, which the audit log has, until it is resumed', async () => {
    const dueAt = ago(10);
    const made = await make(dueAt);
    const [taken] = await schedules.takeDue(0, 0, 10);
    await schedules.pause(taken!.schedule, 'no such time zone');
    const last = { outcome: 'refused', dueAt, reason: 'no such time zone' };
    const paused = { paused: true, pausedReason: 'no such time zone', nextAt: null, last };
    expect(await read(made)).toMatchObject({ ...paused, passed: { refused: 1 } });
    expect(await schedules.takeDue(0, 0, 10)).toEqual([]);
    const records = await sql(
      stores,
      `SELECT detail FROM audit_records WHERE tenant_id = '${tenantId}' ORDER BY id`,
    );
    expect(records.at(-1)).toMatchObject({ detail: { paused: true, reason: 'no such time zone' } });
    await schedules.change(await read(made), spec({ agent: 'index', paused: true }), null, PLATFORM_ACTOR);
    expect(await read(made)).toMatchObject({ pausedReason: 'no such time zone' });
    await schedules.change(await read(made), spec(), ago(0), PLATFORM_ACTOR);
    expect(await read(made)).toMatchObject({ paused: false, pausedReason: null });
  });

  it('that waits is taken as soon as the previous task has ended, and found by the sweep', async () => {
    const found = async () => (await stores.runs.findWork(60_000)).dueSchedules;
    const input = newTask({ tenantId });
    await stores.tasks.create(input);
    const made = await make(ago(10), { overlap: 'queue' });
    await schedules.note(made, started(ago(0)), input.task.id, PLATFORM_ACTOR);
    const [taken] = await schedules.takeDue(60_000, 0, 10);
    await schedules.wait(taken!.schedule, 60_000);
    expect([await found(), await schedules.takeDue(60_000, 0, 10)]).toEqual([false, []]);
    await sql(stores, `UPDATE tasks SET state = 3 WHERE id = '${input.task.id}'`);
    expect(await found()).toBe(true);
    expect(await schedules.takeDue(60_000, 0, 10)).toMatchObject([
      { schedule: { id: made.id, isWaiting: true } },
    ]);
  });

  it('that waits does so no longer when its next time is changed, and goes on when something else is', async () => {
    const nextAt = ago(1_000);
    const made = await make(nextAt);
    await schedules.wait(made, 60_000);
    const waiting = await read(made);
    expect(waiting.isWaiting).toBe(true);
    const other = await schedules.change(waiting, spec({ overlap: 'queue' }), nextAt, PLATFORM_ACTOR);
    expect(other?.isWaiting).toBe(true);
    const later = await schedules.change(other!, spec(), new Date(Date.now() + 60_000), PLATFORM_ACTOR);
    expect(later?.isWaiting).toBe(false);
  });

  it('of one tenant is not taken after all those of another', async () => {
    const many = await Promise.all(['a', 'b', 'c'].map((name) => make(ago(60_000), { name })));
    tenantId = randomUUID();
    await sql(stores, `INSERT INTO tenants (id, slug) VALUES ('${tenantId}', '${tenantId}')`);
    const other = await make(ago(1_000));
    const taken = await schedules.takeDue(60_000, 0, 2);
    expect(taken.map(({ schedule }) => schedule.tenantId).sort()).toEqual(
      [many[0]!.tenantId, other.tenantId].sort(),
    );
  });

  it('counts as overdue until its time is handled, but not of a suspended tenant or while it waits', async () => {
    expect(await schedules.overdueSeconds()).toBe(0);
    await make(new Date(Date.now() + 60_000), { name: 'later' });
    expect(await schedules.overdueSeconds()).toBe(0);
    await make(ago(20_000));
    expect(await schedules.overdueSeconds()).toBeCloseTo(20, -1);
    const [taken] = await schedules.takeDue(60_000, 0, 10);
    expect(await schedules.overdueSeconds()).toBeGreaterThan(15);
    await sql(stores, `UPDATE tenants SET suspended_at = now() WHERE id = '${tenantId}'`);
    expect(await schedules.overdueSeconds()).toBe(0);
    await sql(stores, `UPDATE tenants SET suspended_at = NULL WHERE id = '${tenantId}'`);
    await schedules.wait(taken!.schedule, 60_000);
    expect(await schedules.overdueSeconds()).toBe(0);
  });

  it('stays with the next worker when it is changed while it is fired', async () => {
    const dueAt = ago(10);
    const made = await make(dueAt);
    const [taken] = await schedules.takeDue(60_000, 0, 10);
    await schedules.begin(taken!.schedule);
    await schedules.change(await read(made), spec({ paused: true }), null, PLATFORM_ACTOR);
    const [again] = await schedules.takeDue(60_000, 0, 10);
    expect(again?.schedule).toMatchObject({ pendingAt: dueAt, nextAt: null, paused: true });
  });
});

it('the schedules of a suspended tenant wait until it is resumed', async () => {
  const schedule = await make(ago(1_000));
  const suspended = (at: string) =>
    sql(stores, `UPDATE tenants SET suspended_at = ${at} WHERE id = '${tenantId}'`);
  await suspended('now()');
  expect(await schedules.takeDue(60_000, 0, 10)).toEqual([]);
  expect(await schedules.takeOne(schedule, new Date(), 60_000)).toBeUndefined();
  await suspended('NULL');
  expect(await schedules.takeDue(60_000, 0, 10)).toMatchObject([{ schedule: { id: schedule.id } }]);
});
