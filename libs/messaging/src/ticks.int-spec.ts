import { randomUUID } from 'node:crypto';
import { DRIVERS } from '../../../test/support/index.js';
import { Inbox } from './inbox.fixture.js';
import { Installation } from './installation.fixture.js';
import type { Messaging, Tick } from './messaging.js';

jest.setTimeout(30_000);

describe.each(DRIVERS)('the ticks of schedules on %s', (driver) => {
  let installation: Installation;
  let one: Messaging;
  let other: Messaging;

  beforeEach(async () => {
    installation = await Installation.on(driver);
    [one, other] = await Promise.all([installation.process(), installation.process()]);
  });
  afterEach(() => installation.close());

  const soon = (ms: number): Date => new Date(Date.now() + ms);
  const someSchedule = () => ({ tenantId: randomUUID(), scheduleId: randomUUID(), timeZone: 'UTC' });

  it('come once at the time of a schedule that fires once, at one of two workers', async () => {
    const inbox = new Inbox<Tick>();
    for (const process of [one, other]) process.consumeTicks(async (tick) => inbox.push(tick));
    const [first, last] = [someSchedule(), someSchedule()];
    const [at, later] = [soon(300), soon(600)];
    await one.setTicks({ ...first, at });
    await other.setTicks({ ...last, at: later });
    await inbox.reach(2);
    const ticks = [first, last].map(({ tenantId, scheduleId }) => ({ tenantId, scheduleId }));
    expect(inbox.items).toEqual([
      { ...ticks[0], dueAt: at },
      { ...ticks[1], dueAt: later },
    ]);
    expect(Date.now()).toBeGreaterThanOrEqual(later.getTime());
  });

  it('come at each time of a cron expression, whoever has taken the one before', async () => {
    const inbox = new Inbox<Tick>();
    for (const process of [one, other]) process.consumeTicks(async (tick) => inbox.push(tick));
    await one.setTicks({ ...someSchedule(), cron: '* * * * * *' });
    const [first, second] = (await inbox.reach(2)).map(({ dueAt }) => dueAt.getTime());
    expect(second! - first!).toBe(1_000);
    expect(first! % 1_000).toBe(0);
  });

  it('come at the new times when they are changed, and no more when they are stopped', async () => {
    const inbox = new Inbox<Tick>();
    one.consumeTicks(async (tick) => inbox.push(tick));
    const [changed, stopped, last] = [someSchedule(), someSchedule(), someSchedule()];
    await one.setTicks({ ...changed, cron: '0 0 1 1 *' });
    await one.setTicks({ ...stopped, at: soon(250) });
    await one.setTicks({ ...last, at: soon(500) });
    await other.setTicks({ ...changed, at: soon(100) });
    await other.stopTicks(stopped.scheduleId);
    expect((await inbox.reach(2)).map(({ scheduleId }) => scheduleId)).toEqual([
      changed.scheduleId,
      last.scheduleId,
    ]);
  });

  it('may be stopped for a schedule that has none', async () => {
    await expect(one.stopTicks(randomUUID())).resolves.toBeUndefined();
  });
});
