import { randomUUID } from 'node:crypto';
import { DRIVERS } from '../../../test/support/index.js';
import { Inbox } from './inbox.fixture.js';
import { Installation } from './installation.fixture.js';
import type { Messaging, Tick } from './messaging.js';

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
  /** A schedule that was stopped before its time, which a slow machine needs more time for. */
  async function stopInTime(ms: number): Promise<{ scheduleId: string; at: Date }> {
    const stopped = { ...someSchedule(), at: soon(ms) };
    await one.setTicks(stopped);
    await other.stopTicks(stopped.scheduleId);
    return Date.now() < stopped.at.getTime() ? stopped : stopInTime(2 * ms);
  }
  const someSchedule = () => ({ tenantId: randomUUID(), scheduleId: randomUUID(), timeZone: 'UTC' });

  it('come once at the time of a schedule that fires once, at one of two workers', async () => {
    const inbox = new Inbox<Tick>();
    let early = 0;
    const receive = async (tick: Tick): Promise<void> => {
      if (Date.now() < tick.dueAt.getTime()) early += 1;
      inbox.push(tick);
    };
    for (const process of [one, other]) process.consumeTicks(receive);
    const [first, last] = [someSchedule(), someSchedule()];
    const [at, later] = [soon(300), soon(600)];
    await one.setTicks({ ...first, at });
    await other.setTicks({ ...last, at: later });
    const received = [...(await inbox.reach(2))].sort((a, b) => Number(a.dueAt) - Number(b.dueAt));
    const ticks = [first, last].map(({ tenantId, scheduleId }) => ({ tenantId, scheduleId }));
    expect(received).toEqual([
      { ...ticks[0], dueAt: at },
      { ...ticks[1], dueAt: later },
    ]);
    expect(early).toBe(0);
  });

  it('come at each time of a cron expression, whichever process took the last one', async () => {
    const inbox = new Inbox<Tick>();
    for (const process of [one, other]) process.consumeTicks(async (tick) => inbox.push(tick));
    await one.setTicks({ ...someSchedule(), cron: '* * * * * *' });
    const pauses = (ticks: readonly Tick[]): number[] =>
      ticks.slice(1).map(({ dueAt }, i) => dueAt.getTime() - ticks[i]!.dueAt.getTime());
    // A machine that is busy for more than a second leaves times out.
    await inbox.until((ticks) => pauses(ticks).includes(1_000));
    expect(pauses(inbox.items).filter((pause) => pause < 1_000)).toEqual([]);
    expect(inbox.items.filter(({ dueAt }) => dueAt.getTime() % 1_000 !== 0)).toEqual([]);
  });

  it('come at the new times when they are changed, and no more when they are stopped', async () => {
    const inbox = new Inbox<Tick>();
    one.consumeTicks(async (tick) => inbox.push(tick));
    const [changed, last] = [someSchedule(), someSchedule()];
    await one.setTicks({ ...changed, cron: '0 0 1 1 *' });
    await other.setTicks({ ...changed, at: soon(100) });
    const { scheduleId: stopped, at } = await stopInTime(250);
    await one.setTicks({ ...last, at: new Date(at.getTime() + 250) });
    await inbox.until((items) => items.some(({ scheduleId }) => scheduleId === last.scheduleId));
    await inbox.until((items) => items.some(({ scheduleId }) => scheduleId === changed.scheduleId));
    expect(inbox.items.filter(({ scheduleId }) => scheduleId === stopped)).toEqual([]);
  });

  it('can be stopped for a schedule without ticks', async () => {
    await expect(one.stopTicks(randomUUID())).resolves.toBeUndefined();
  });
});
