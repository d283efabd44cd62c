import { randomUUID } from 'node:crypto';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { DRIVERS } from '../../../test/support/index.js';
import { Inbox } from './inbox.fixture.js';
import { Installation, signalOf, someRun } from './installation.fixture.js';
import type {
  EagerRun,
  ControlMessage,
  Messaging,
  PushJob,
  RunJob,
  Spending,
  TaskSignal,
} from './messaging.js';

const RUN_MS = 20;

describe.each(DRIVERS)('messaging on %s', (driver) => {
  let installation: Installation;
  let one: Messaging;
  let other: Messaging;

  beforeEach(async () => {
    installation = await Installation.on(driver);
    [one, other] = await Promise.all([installation.process(), installation.process()]);
  });
  afterEach(() => installation.close());

  const untilDepth = async (depth: { waiting: number; active: number }): Promise<void> => {
    while (!isDeepStrictEqual(await other.queueDepth(), depth));
  };
  const consume = (messaging: Messaging, inbox: Inbox<RunJob>) =>
    messaging.consumeRuns(10, async (job) => inbox.push(job));

  describe('the queue', () => {
    it('gives each run to one of two workers', async () => {
      const inbox = new Inbox<RunJob>();
      consume(one, inbox);
      consume(other, inbox);
      const runs = Array.from({ length: 40 }, () => someRun());
      await Promise.all([
        ...runs.slice(20).map((run) => one.enqueueRuns([run])),
        one.enqueueRuns(runs.slice(0, 20)),
      ]);
      const received = await inbox.reach(40);
      expect(new Set(received.map(({ runId }) => runId))).toEqual(new Set(runs.map(({ runId }) => runId)));
      expect(received).toHaveLength(40);
    });

    it('holds a run once, however often it is added', async () => {
      const [run, last] = [someRun(), someRun()];
      await one.enqueueRuns([run]);
      await other.enqueueRuns([run]);
      await one.enqueueRuns([run, last]);
      expect(await other.queueDepth()).toEqual({ waiting: 2, active: 0 });
      const inbox = new Inbox<RunJob>();
      one.consumeRuns(1, async (job) => inbox.push(job));
      expect(await inbox.reach(2)).toEqual([run, last]);
    });

    it('does not give out a run that is in hand a second time', async () => {
      const run = someRun();
      const inbox = new Inbox<RunJob>();
      let finish = (): void => undefined;
      one.consumeRuns(10, async (job) => {
        inbox.push(job);
        if (job.runId === run.runId) await new Promise<void>((resolve) => (finish = resolve));
      });
      await one.enqueueRuns([run]);
      await inbox.reach(1);
      expect(await one.queueDepth()).toEqual({ waiting: 0, active: 1 });
      const next = someRun();
      await one.enqueueRuns([run, next]);
      expect(await inbox.reach(2)).toEqual([run, next]);
      finish();
    });

    it('takes the next attempt of a run as another job', async () => {
      const run = someRun();
      await one.enqueueRuns([run, { ...run, attempt: 1 }]);
      const inbox = new Inbox<RunJob>();
      consume(other, inbox);
      const attempts = (await inbox.reach(2)).map(({ attempt }) => attempt);
      expect(attempts.sort()).toEqual([0, 1]);
    });

    it('goes on after a handler that fails', async () => {
      const inbox = new Inbox<RunJob>();
      one.consumeRuns(1, async (job) => {
        inbox.push(job);
        if (inbox.items.length === 1) throw new Error('the handler broke its promise');
      });
      const runs = [someRun(), someRun()];
      await other.enqueueRuns(runs);
      expect(await inbox.reach(2)).toEqual(runs);
    });

    it('gives a run to another worker when its process is killed', async () => {
      const options = JSON.stringify({ ...installation.options, hold: true });
      const script = join(__dirname, 'consumer-process.fixture.cjs');
      const child = spawn(process.execPath, [script, options], { stdio: ['ignore', 'pipe', 'inherit'] });
      const lines = new Inbox<string>();
      createInterface(child.stdout).on('line', lines.push);
      await lines.reach(1);
      const run = someRun();
      await one.enqueueRuns([run]);
      expect(await lines.reach(2)).toEqual(['ready', run.runId]);
      const shared = [someRun(), someRun()];
      await one.enqueueNewRuns(shared);
      await lines.reach(4);
      child.kill('SIGKILL');
      await once(child, 'exit');

      const inbox = new Inbox<RunJob>();
      consume(other, inbox);
      const again = (await inbox.reach(3)).map(({ runId }) => runId);
      expect(again.sort()).toEqual([run, ...shared].map(({ runId }) => runId).sort());
    });

    it('puts new runs into shared jobs, and each run into the hands of one worker', async () => {
      const runs = Array.from({ length: 60 }, () => someRun());
      await Promise.all([
        ...runs.slice(20).map((run) => one.enqueueNewRuns([run])),
        one.enqueueNewRuns(runs.slice(0, 20)),
      ]);
      expect(await other.queueDepth()).toEqual({ waiting: 60, active: 0 });
      const inbox = new Inbox<RunJob>();
      consume(one, inbox);
      consume(other, inbox);
      const received = (await inbox.reach(60)).map(({ runId }) => runId);
      expect(received.sort()).toEqual(runs.map(({ runId }) => runId).sort());
      while ((await one.queueDepth()).active > 0);
      expect(inbox.items).toHaveLength(60);
    });

    it('takes a run again when it is over', async () => {
      const run = someRun();
      const inbox = new Inbox<RunJob>();
      consume(other, inbox);
      for (const times of [1, 2]) {
        await one.enqueueNewRuns([run]);
        expect(await inbox.reach(times)).toEqual(Array.from({ length: times }, () => run));
        while ((await one.queueDepth()).active > 0);
      }
    });

    it('executes a run that comes by itself in a slot of the worker, if one is free', async () => {
      let finish!: () => void;
      const finished = new Promise<void>((resolve) => (finish = resolve));
      const others = new Inbox<RunJob>();
      const consumer = one.consumeRuns(2, async (job) => others.push(job));
      const begin = (run = finished): boolean => consumer.tryStart(someRun(), () => run);
      try {
        expect(begin()).toBe(true);
        consumer.pause();
        expect(begin()).toBe(false);
        consumer.resume();
        const short = new Promise<void>((resolve) => setImmediate(resolve));
        expect(begin(short)).toBe(true);
        expect(begin()).toBe(false);
        // The slot is free again for a run of the queue.
        await one.enqueueNewRuns([someRun()]);
        await others.reach(1);
        const closed = consumer.close();
        expect(begin()).toBe(false);
        finish();
        await closed;
      } finally {
        finish();
      }
    });

    it('keeps slots free for the only runs of their tenants, which no other run holds up', async () => {
      const inbox = new Inbox<RunJob>();
      const finish: (() => void)[] = [];
      const consumer = one.consumeRuns(3, async (job, claimed) => {
        inbox.push(job);
        claimed();
        await new Promise<void>((resolve) => finish.push(resolve));
      });
      const [first, second, third, only, last] = Array.from({ length: 5 }, () => someRun());
      try {
        consumer.reserve(1, 4);
        await one.enqueueNewRuns([first!, second!, third!]);
        await inbox.reach(2);
        // A run that is sent to the worker without the queue finds no slot either.
        expect(consumer.tryStart(someRun(), async () => undefined)).toBe(false);
        await one.enqueueNewRuns([{ ...only!, mayUseReserved: true }]);
        expect(await inbox.reach(3)).toEqual([first, second, only]);
        expect(consumer.tryStart({ ...someRun(), mayUseReserved: true }, async () => undefined)).toBe(false);
        // Of the two that wait, the only run of its tenant goes first.
        await one.enqueueRuns([{ ...last!, mayUseReserved: true }]);
        finish.shift()?.();
        expect((await inbox.reach(4)).at(-1)).toEqual(last);
        // The slot of that one is for an ordinary run when none is reserved any more.
        consumer.reserve(0, 4);
        finish.shift()?.();
        expect((await inbox.reach(5)).at(-1)).toEqual(third);
      } finally {
        while (finish.length > 0) finish.shift()?.();
        void consumer.close();
      }
    });

    it('gives no reserved slot to a tenant that has many runs in the worker, whatever its runs may use', async () => {
      const [flood, other] = [someRun().tenantId, crypto.randomUUID()];
      const ofFlood = Array.from({ length: 4 }, () => ({ ...someRun(), tenantId: flood }));
      const only = { ...someRun(), tenantId: other, mayUseReserved: true };
      const inbox = new Inbox<RunJob>();
      const finish: (() => void)[] = [];
      const consumer = one.consumeRuns(4, async (job, claimed) => {
        inbox.push(job);
        claimed();
        await new Promise<void>((resolve) => finish.push(resolve));
      });
      try {
        consumer.reserve(2, 2);
        await one.enqueueRuns(ofFlood.slice(0, 2));
        await inbox.reach(2);
        // Two APIs have each taken one of these for the first run of its tenant.
        const late = ofFlood.slice(2).map((run) => ({ ...run, mayUseReserved: true }));
        await one.enqueueRuns(late);
        expect(consumer.tryStart({ ...late[0]!, tenantId: flood }, async () => undefined)).toBe(false);
        // The reserved slots are there for others.
        await one.enqueueRuns([only]);
        expect((await inbox.reach(3)).at(-1)?.runId).toBe(only.runId);
        // The runs of the flood come when ordinary slots are free.
        finish.splice(0).forEach((end) => end());
        const after = (await inbox.reach(5)).slice(3).map(({ runId }) => runId);
        expect(after.sort()).toEqual(late.map(({ runId }) => runId).sort());
      } finally {
        while (finish.length > 0) finish.shift()?.();
        void consumer.close();
      }
    });

    it('gives a free slot to an ordinary run when the queue of the only runs is empty', async () => {
      const inbox = new Inbox<RunJob>();
      const finish: (() => void)[] = [];
      const consumer = one.consumeRuns(2, async (job, claimed) => {
        inbox.push(job);
        claimed();
        await new Promise<void>((resolve) => finish.push(resolve));
      });
      const [first, second, ordinary] = Array.from({ length: 3 }, () => someRun());
      try {
        await one.enqueueRuns([{ ...first!, mayUseReserved: true }]);
        await inbox.reach(1);
        await untilDepth({ waiting: 0, active: 0 });
        await one.enqueueRuns([{ ...second!, mayUseReserved: true }]);
        await inbox.reach(2);
        await one.enqueueRuns([ordinary!]);
        // The worker has given it back, and holds two jobs of its queue and one of the other.
        await untilDepth({ waiting: 1, active: 3 });
        finish.shift()?.();
        expect((await inbox.reach(3)).at(-1)).toEqual(ordinary);
      } finally {
        while (finish.length > 0) finish.shift()?.();
        void consumer.close();
      }
    });

    it('executes ordinary runs also while the queue of the only runs is never empty', async () => {
      const ordinary = someRun();
      const inbox = new Inbox<RunJob>();
      let isOver = false;
      let start = (): void => undefined;
      const held = new Promise<void>((resolve) => (start = resolve));
      const feed = () => one.enqueueRuns([{ ...someRun(), mayUseReserved: true }]);
      const consumer = one.consumeRuns(1, async (job, claimed) => {
        claimed();
        await held;
        if (job.runId === ordinary.runId) inbox.push(job);
        // Each run makes another one, and lasts until the worker holds its job.
        else if (!isOver) await feed().then(() => sleep(RUN_MS));
      });
      try {
        await Promise.all([feed(), feed(), feed()]);
        await untilDepth({ waiting: 2, active: 1 });
        await one.enqueueRuns([ordinary]);
        // The worker has given it back, and holds a job of each queue.
        await untilDepth({ waiting: 3, active: 2 });
        start();
        expect(await inbox.reach(1)).toEqual([ordinary]);
      } finally {
        isOver = true;
        start();
        void consumer.close();
      }
    });

    it('notifies a worker of a run, and reports whether it has a subscriber', async () => {
      const { attempt: _, ...run } = someRun();
      const inbox = new Inbox<EagerRun>();
      const end = other.receiveEagerRuns('worker', (news) => inbox.push(news));
      expect(one.supportsEagerStart).toBe(one.driver === 'redis');
      if (!one.supportsEagerStart) return expect(await one.sendEagerRun('worker', run)).toBe(false);
      while (!(await one.sendEagerRun('worker', run)));
      expect(await inbox.reach(1)).toEqual([{ ...run, mayUseReserved: false }]);
      expect(await one.sendEagerRun('another', run)).toBe(false);
      // A publisher can rely on the receipt of a run by a worker, also while the worker shuts down.
      const ended = end();
      let heard = 1;
      while (await one.sendEagerRun('worker', run)) heard += 1;
      await ended;
      expect(inbox.items).toHaveLength(heard);
    });

    it('is done with a run once it is claimed, and the run keeps its slot until it is over', async () => {
      const [mine, others] = [new Inbox<RunJob>(), new Inbox<RunJob>()];
      const finish: (() => void)[] = [];
      const consumer = one.consumeRuns(2, async (job, claimed) => {
        mine.push(job);
        claimed();
        await new Promise<void>((resolve) => finish.push(resolve));
      });
      const [first, ...runs] = Array.from({ length: 8 }, () => someRun());
      await one.enqueueNewRuns([first!]);
      await mine.reach(1);
      while ((await one.queueDepth()).active > 0);
      // Those that find no slot here are for the others.
      await one.enqueueNewRuns(runs);
      await mine.reach(2);
      consume(other, others);
      await others.reach(6);
      expect(mine.items).toEqual([first, runs[0]]);
      expect(others.items).toEqual(runs.slice(1));
      let isClosed = false;
      const closing = consumer.close().then(() => (isClosed = true));
      finish[0]?.();
      await one.ping();
      expect(isClosed).toBe(false);
      finish[1]?.();
      await closing;
    });

    it('gives back a run with a job of its own, too', async () => {
      const [mine, others] = [new Inbox<RunJob>(), new Inbox<RunJob>()];
      let finish = (): void => undefined;
      const over = new Promise<void>((resolve) => (finish = resolve));
      one.consumeRuns(2, async (job, claimed) => {
        mine.push(job);
        claimed();
        await over;
      });
      await one.enqueueNewRuns([someRun(), someRun()]);
      await mine.reach(2);
      const last = someRun();
      // It is taken by the full worker: there is no other yet.
      await one.enqueueNewRuns([last]);
      const third = await installation.process();
      consume(third, others);
      expect(await others.reach(1)).toEqual([last]);
      expect(mine.items).toHaveLength(2);
      finish();
    });

    it('takes the next run when one is over', async () => {
      const inbox = new Inbox<RunJob>();
      let running = 0;
      one.consumeRuns(3, async (job, claimed) => {
        running += 1;
        expect(running).toBeLessThanOrEqual(3);
        await other.ping();
        claimed();
        await other.ping();
        running -= 1;
        inbox.push(job);
      });
      const runs = Array.from({ length: 50 }, () => someRun());
      for (const run of runs) void other.enqueueNewRuns([run]);
      await inbox.reach(25);
      await other.enqueueNewRuns(runs.map((run) => ({ ...run, attempt: 1 })));
      await inbox.reach(100);
    });

    it('finishes what is in hand before a worker is closed, and takes no more', async () => {
      const inbox = new Inbox<RunJob>();
      let finish = (): void => undefined;
      const consumer = one.consumeRuns(1, async (job) => {
        inbox.push(job);
        await new Promise<void>((resolve) => (finish = resolve));
      });
      const [run, later] = [someRun(), someRun()];
      await one.enqueueRuns([run, later]);
      await inbox.reach(1);
      let closed = false;
      const closing = consumer.close().then(() => (closed = true));
      expect(await one.queueDepth()).toEqual({ waiting: 1, active: 1 });
      expect(closed).toBe(false);
      finish();
      await closing;
      expect(inbox.items).toEqual([run]);
      expect(await one.queueDepth()).toEqual({ waiting: 1, active: 0 });
    });

    it('leaves the jobs to other workers while it is paused', async () => {
      const [paused, all] = [new Inbox<RunJob>(), new Inbox<RunJob>()];
      const consumer = one.consumeRuns(10, async (job) => {
        all.push(job);
        paused.push(job);
      });
      const first = someRun();
      await one.enqueueRuns([first]);
      expect(await paused.reach(1)).toEqual([first]);
      consumer.pause();
      // It still takes the job that it was already waiting for.
      const last = someRun();
      await one.enqueueRuns([last]);
      const rest = other.consumeRuns(10, async (job) => all.push(job));
      const runs = Array.from({ length: 20 }, someRun);
      await one.enqueueRuns(runs);
      const taken = (await all.reach(22)).map(({ runId }) => runId);
      await rest.close();
      expect(taken.sort()).toEqual([first, last, ...runs].map(({ runId }) => runId).sort());
      expect(paused.items.length).toBeLessThanOrEqual(2);
      consumer.resume();
      const next = someRun();
      const before = paused.items.length;
      await one.enqueueRuns([next]);
      await paused.reach(before + 1);
      expect(paused.items.at(-1)).toEqual(next);
    });

    it('lets go of the server when a worker is closed that has only just begun', async () => {
      const messaging = await installation.process();
      await messaging.consumeRuns(1, async () => undefined).close();
      await messaging.close();
    });
  });

  it('wakes one worker for a task whose push configs are due, for any number of notices meanwhile', async () => {
    const inbox = new Inbox<PushJob>();
    const job = (): PushJob => ({ tenantId: randomUUID(), taskId: randomUUID() });
    const [first, last] = [job(), job()];
    await one.enqueuePushes([first]);
    await other.enqueuePushes([first, last]);
    const consumers = [one, other].map((process) =>
      process.consumePushes(1, async (news) => inbox.push(news)),
    );
    await inbox.reach(2);
    const again = job();
    await one.enqueuePushes([again]);
    expect(new Set(await inbox.reach(3))).toEqual(new Set([first, last, again]));
    // A task can be enqueued again when its job is done.
    await Promise.all(consumers.map((consumer) => consumer.close()));
    await other.enqueuePushes([first]);
    one.consumePushes(1, async (news) => inbox.push(news));
    expect((await inbox.reach(4)).at(-1)).toEqual(first);
  });

  describe('task channels', () => {
    const [tenantId, taskId] = [randomUUID(), randomUUID()];

    it('lose nothing that is published after a subscription', async () => {
      const inbox = new Inbox<string>();
      const tasks = Array.from({ length: 200 }, () => randomUUID());
      await Promise.all(
        tasks.map(async (task) => {
          await other.subscribeTask(tenantId, task, () => inbox.push(task)).inForce;
          await one.publishTask(tenantId, task, signalOf(1));
        }),
      );
      expect(new Set(await inbox.reach(200))).toEqual(new Set(tasks));
    });

    it('keep the order of the publisher', async () => {
      const inbox = new Inbox<number>();
      await other.subscribeTask(tenantId, taskId, ({ lastSequence }) => inbox.push(lastSequence)).inForce;
      const sequences = Array.from({ length: 500 }, (_, index) => index + 1);
      await Promise.all(sequences.map((sequence) => one.publishTask(tenantId, taskId, signalOf(sequence))));
      expect(await inbox.reach(500)).toEqual(sequences);
    });

    it('carry the JSON of an event as it is', async () => {
      const inbox = new Inbox<TaskSignal>();
      await other.subscribeTask(tenantId, taskId, inbox.push).inForce;
      const json = '{"text": "a\\u0000b \\ud800 é 漢 \\n", "n": 1.0}';
      const signal = { lastSequence: 9, events: [{ sequence: 9, attempt: 2, json }] };
      await one.publishTask(tenantId, taskId, signal);
      expect(await inbox.reach(1)).toEqual([signal]);
    });

    it('have only the last sequence when the events are too big', async () => {
      const inbox = new Inbox<TaskSignal>();
      await other.subscribeTask(tenantId, taskId, inbox.push).inForce;
      const limit = driver === 'redis' ? 64 * 1024 : 7_500;
      await one.publishTask(tenantId, taskId, signalOf(1, limit));
      await one.publishTask(tenantId, taskId, signalOf(2, limit - 100));
      const [big, small] = await inbox.reach(2);
      expect(big).toEqual({ lastSequence: 1, events: [] });
      expect(small?.events).toHaveLength(1);
    });

    it('reach every listener of the task until it leaves, and no other', async () => {
      const inboxes = [new Inbox<number>(), new Inbox<number>(), new Inbox<number>()] as const;
      const into = (inbox: Inbox<number>) => (signal: TaskSignal) => inbox.push(signal.lastSequence);
      const first = other.subscribeTask(tenantId, taskId, into(inboxes[0]));
      await first.inForce;
      await other.subscribeTask(tenantId, taskId, into(inboxes[1])).inForce;
      await other.subscribeTask(randomUUID(), taskId, into(inboxes[2])).inForce;
      await one.publishTask(tenantId, taskId, signalOf(1));
      await Promise.all([inboxes[0].reach(1), inboxes[1].reach(1)]);
      first.end();
      first.end();
      await one.publishTask(tenantId, taskId, signalOf(2));
      expect(await inboxes[1].reach(2)).toEqual([1, 2]);
      expect(inboxes[0].items).toEqual([1]);
      expect(inboxes[2].items).toEqual([]);
    });

    it('can be left and joined again at once', async () => {
      const inbox = new Inbox<number>();
      for (let round = 1; round <= 50; round++) {
        const { inForce, end } = other.subscribeTask(tenantId, taskId, (signal) =>
          inbox.push(signal.lastSequence),
        );
        await inForce;
        await one.publishTask(tenantId, taskId, signalOf(round));
        await inbox.reach(round);
        end();
      }
      expect(inbox.items).toHaveLength(50);
    });
  });

  it('sends a control message to every process, the sender too', async () => {
    const inboxes = [new Inbox<ControlMessage>(), new Inbox<ControlMessage>()] as const;
    await one.subscribeControl(inboxes[0].push);
    await other.subscribeControl(inboxes[1].push);
    const message: ControlMessage = { type: 'token-revoked', tenantId: 't', tokenId: 'k' };
    await one.publishControl(message);
    for (const inbox of inboxes) expect(await inbox.reach(1)).toEqual([message]);
  });

  it('reports that it is up', async () => {
    await expect(one.ping()).resolves.toBeUndefined();
  });

  it('starts on a machine that is too busy to read the answers in time', async () => {
    const messaging = installation.create();
    const started = messaging.start(30_000);
    // The event loop stands still for longer than a connection may take.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500);
    await started;
    await messaging.ping();
    await messaging.close();
  });

  it('reports, without the password, that the server cannot be reached', async () => {
    const nowhere = 'user:s3cret@127.0.0.1:1';
    const messaging = installation.create({
      redisUrl: driver === 'redis' ? `redis://${nowhere}` : undefined,
      databaseUrl: `postgres://${nowhere}/baton`,
    });
    const failure = await messaging.start(1_000).catch(String);
    expect(failure).toMatch(/at 127\.0\.0\.1:1 does not answer: .*ECONNREFUSED/);
    expect(failure).not.toContain('s3cret');
  });

  describe('what a key may spend', () => {
    const spendings = (key: string, count: number, most: number) =>
      Promise.all(Array.from({ length: count }, (_, i) => (i % 2 ? one : other).spend(key, most, 60)));
    const allowed = (all: Spending[]) => all.filter((spending) => spending.allowed).length;

    it('is counted over all processes, each key for itself', async () => {
      const [mine, another] = await Promise.all([spendings('a', 40, 7), spendings('b', 5, 7)]);
      expect([allowed(mine), allowed(another)]).toEqual([7, 5]);
      for (const { retryAfterMs } of mine.filter((spending) => !spending.allowed)) {
        expect(retryAfterMs).toBeGreaterThan(0);
        expect(retryAfterMs).toBeLessThanOrEqual(60_000);
      }
    });

    it('follows a limit that is made larger or smaller', async () => {
      // None is refused at first: whether refused ones count depends on when a process reads of the full window.
      expect(allowed(await spendings('a', 3, 3))).toBe(3);
      expect(allowed(await spendings('a', 10, 8))).toBe(5);
      expect(allowed(await spendings('a', 1, 2))).toBe(0);
    });

    it('begins anew when the time is up', async () => {
      expect(allowed(await Promise.all([one.spend('a', 1, 1), other.spend('a', 1, 1)]))).toBe(1);
      let spent: Spending = await one.spend('a', 1, 1);
      while (!spent.allowed) {
        await new Promise((resolve) => setTimeout(resolve, spent.retryAfterMs));
        spent = await other.spend('a', 1, 1);
      }
    });
  });
});
