import type { Environment } from '@baton/config';
import { Metrics } from '@baton/telemetry';
import { AppendRefused } from '../core/append-refused.js';
import { FairStarts } from './fair-starts.js';

/** A run of this time is over before it counts as long. */
const SHORT_MS = 20;
/** Longer than any run counts as young, and than a tenant counts as active. */
const LONG_MS = 10_000;

let metrics: Metrics;
let starts: FairStarts;

const startsWith = (reservedSlotsPercent: number): FairStarts => {
  metrics = new Metrics();
  return new FairStarts({ reservedSlotsPercent } as Environment, metrics);
};

beforeEach(() => {
  jest.useFakeTimers();
  starts = startsWith(12);
});
afterEach(() => jest.useRealTimers());

/** Runs that begin at the same time. */
class Runs {
  begun = 0;

  constructor(
    private readonly tenantId: string,
    private readonly runMs: number,
  ) {}

  async send(count: number, signal?: AbortSignal): Promise<void> {
    const run = async () => {
      const leave = await starts.enter(this.tenantId, signal ?? new AbortController().signal);
      this.begun += 1;
      await new Promise((done) => setTimeout(done, this.runMs));
      leave();
    };
    await Promise.all(Array.from({ length: count }, run));
  }
}

/** Another tenant calls an agent now and then. */
async function callNowAndThen(forMs: number): Promise<void> {
  for (let ms = 0; ms < forMs; ms += 1_000) {
    const leave = await starts.enter('light', new AbortController().signal);
    leave();
    await jest.advanceTimersByTimeAsync(1_000);
  }
}

async function held(): Promise<number> {
  return Number(/^baton_worker_runs_held (\d+)$/m.exec((await metrics.render()).body)?.[1]);
}

it('lets a tenant that is alone begin all its runs at once', async () => {
  const runs = new Runs('heavy', SHORT_MS);
  const sent = runs.send(50);
  await jest.advanceTimersByTimeAsync(0);
  expect(runs.begun).toBe(50);
  await jest.advanceTimersByTimeAsync(SHORT_MS);
  await sent;
});

it('lets two short runs of a tenant begin at a time while another tenant has few', async () => {
  await starts.enter('light', new AbortController().signal);
  const runs = new Runs('heavy', SHORT_MS);
  const sent = runs.send(20);
  await jest.advanceTimersByTimeAsync(0);
  // The first eight begin before the tenant counts as heavy.
  expect(runs.begun).toBe(8);
  expect(await held()).toBe(12);
  await jest.advanceTimersByTimeAsync(SHORT_MS);
  expect(runs.begun).toBe(10);
  await jest.advanceTimersByTimeAsync(SHORT_MS);
  expect(runs.begun).toBe(12);
  await jest.advanceTimersByTimeAsync(4 * SHORT_MS);
  expect(runs.begun).toBe(20);
  await jest.advanceTimersByTimeAsync(SHORT_MS);
  await sent;
  expect(await held()).toBe(0);
});

it('holds up no run of the tenant that has few', async () => {
  await starts.enter('light', new AbortController().signal);
  void new Runs('heavy', SHORT_MS).send(20);
  const runs = new Runs('light', SHORT_MS);
  void runs.send(1);
  await jest.advanceTimersByTimeAsync(0);
  expect(runs.begun).toBe(1);
});

it('lets more and more runs of a tenant begin at a time while they last', async () => {
  const runs = new Runs('heavy', LONG_MS);
  const calls = callNowAndThen(2_000);
  void runs.send(50);
  await calls;
  expect(runs.begun).toBe(50);
});

it('holds a tenant to few starts for as long as many of its runs wait', async () => {
  const runs = new Runs('heavy', 200);
  const calls = callNowAndThen(3_000);
  void runs.send(100);
  await calls;
  // Eight begin before the tenant counts as heavy, then two in 200 ms.
  expect(runs.begun).toBeLessThanOrEqual(8 + 2 * (3_000 / 200));
});

it('lets all runs begin when the other tenant is no longer active', async () => {
  await starts.enter('light', new AbortController().signal);
  const runs = new Runs('heavy', SHORT_MS);
  const sent = runs.send(1_000);
  await jest.advanceTimersByTimeAsync(2_000 + SHORT_MS);
  expect(runs.begun).toBe(1_000);
  await jest.advanceTimersByTimeAsync(SHORT_MS);
  await sent;
});

it('counts the runs of a tenant that go on when another one of it ends', async () => {
  await starts.enter('light', new AbortController().signal);
  const short = new Runs('heavy', SHORT_MS).send(1);
  void new Runs('heavy', LONG_MS).send(7);
  await jest.advanceTimersByTimeAsync(SHORT_MS);
  await short;
  const more = new Runs('heavy', SHORT_MS);
  void more.send(5);
  await jest.advanceTimersByTimeAsync(0);
  expect(more.begun).toBe(1);
});

it('holds up no tenant that has some', async () => {
  await starts.enter('light', new AbortController().signal);
  const runs = new Runs('medium', SHORT_MS);
  void runs.send(8);
  await jest.advanceTimersByTimeAsync(0);
  expect(runs.begun).toBe(8);
});

it('holds up none of two tenants that both have many', async () => {
  const tenants = ['one', 'two'].map((name) => new Runs(name, 200));
  for (const runs of tenants) void runs.send(300);
  await jest.advanceTimersByTimeAsync(0);
  expect(tenants.map(({ begun }) => begun)).toEqual([300, 300]);
});

it('gives up a run that is stopped while it waits', async () => {
  await starts.enter('light', new AbortController().signal);
  const runs = new Runs('heavy', LONG_MS);
  void runs.send(8);
  const stop = new AbortController();
  const refused = expect(runs.send(1, stop.signal)).rejects.toBeInstanceOf(AppendRefused);
  stop.abort('canceled');
  await refused;
  expect(await held()).toBe(0);
  await expect(runs.send(1, stop.signal)).rejects.toBeInstanceOf(AppendRefused);
});

it('holds up no run if the operator reserves no slots', async () => {
  starts = startsWith(0);
  await starts.enter('light', new AbortController().signal);
  const runs = new Runs('heavy', LONG_MS);
  void runs.send(50);
  await jest.advanceTimersByTimeAsync(0);
  expect(runs.begun).toBe(50);
});
