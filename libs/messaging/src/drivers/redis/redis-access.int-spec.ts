import { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import { DRIVERS, type PrivateRedis, startPrivateRedis } from '../../../../../test/support/index.js';
import { Inbox } from '../../inbox.fixture.js';
import { Installation, signalOf, someRun } from '../../installation.fixture.js';
import { inspectRedis } from './inspect-redis.js';
import { RedisMessaging } from './redis-messaging.js';
import { waitUntil } from '../../../../../apps/local/src/services/service-process.js';
import type { ControlMessage, RunJob, TaskSignal } from '../../messaging.js';

// A machine without Redis tests Postgres alone.
const withRedis = DRIVERS.includes('redis') ? describe : describe.skip;

/** As in docs/operating/redis.md, with `baton` for the namespace. */
const rightsIn = (namespace: string): string[] => [
  `~${namespace}:*`,
  `&${namespace}:*`,
  '+@read +@write +@connection +@scripting +@pubsub +@transaction -@dangerous +info +time',
];

withRedis('messaging as a user of Redis with few rights', () => {
  let redis: PrivateRedis;
  let administrator: Redis;
  beforeAll(async () => {
    redis = await startPrivateRedis();
    administrator = new Redis(redis.url);
  });
  afterAll(async () => {
    administrator.disconnect();
    await redis.remove();
  });

  it('hands out runs, carries signals and counts', async () => {
    const url = new URL(redis.url);
    [url.username, url.password] = ['baton', 'secret'];
    const installation = await Installation.on('redis', url.toString());
    try {
      const rights = rightsIn(installation.options.namespace ?? '')
        .join(' ')
        .split(' ');
      await administrator.call('ACL', 'SETUSER', 'baton', 'on', '>secret', ...rights);
      const [api, worker] = await Promise.all([installation.process(), installation.process()]);
      const [tenantId, taskId] = [randomUUID(), randomUUID()];
      const [runs, signals, control] = [
        new Inbox<RunJob>(),
        new Inbox<TaskSignal>(),
        new Inbox<ControlMessage>(),
      ];
      worker.consumeRuns(10, async (job) => runs.push(job));
      await api.subscribeTask(tenantId, taskId, signals.push).inForce;
      await api.subscribeControl(control.push);
      await api.enqueueRuns([someRun(), someRun()]);
      await api.enqueueNewRuns([someRun()]);
      await worker.publishTask(tenantId, taskId, signalOf(1));
      await worker.publishControl({ type: 'catalog-changed', tenantId: null });
      await Promise.all([runs.reach(3), signals.reach(1), control.reach(1)]);
      expect((await api.spend('key', 1, 60)).allowed).toBe(true);
      expect((await worker.spend('key', 1, 60)).allowed).toBe(false);
      await api.queueDepth();
      expect([await api.refusal(), await worker.refusal()]).toEqual([undefined, undefined]);
      // Nothing was asked that the user may not ask.
      expect(await administrator.call('ACL', 'LOG')).toEqual([]);
      const user = new Redis(url.toString());
      for (const [command, ...values] of [
        ['flushall'],
        ['keys', '*'],
        ['get', 'other'],
        ['publish', 'other', ''],
      ])
        await expect(user.call(command!, ...values)).rejects.toThrow('NOPERM');
      user.disconnect();
    } finally {
      await installation.close();
    }
  });

  it.each([
    ['-eval -evalsha', 'eval'],
    ['-info', 'info'],
    ['resetchannels', 'channels'],
    ['-set', 'set'],
  ])('says what Redis refuses to a user whose rights are changed by %s', async (without, refused) => {
    const url = new URL(redis.url);
    [url.username, url.password] = ['less', 'secret'];
    const rights = [...rightsIn('baton').join(' ').split(' '), ...without.split(' ')];
    await administrator.call('ACL', 'SETUSER', 'less', 'reset', 'on', '>secret', ...rights);
    const log = { info: jest.fn(), warn: jest.fn(), error: jest.fn() };
    const messaging = new RedisMessaging(url.toString(), log);
    const said = new RegExp(`NOPERM .*${refused}`);
    try {
      if (without === 'resetchannels') await expect(messaging.start(60_000)).rejects.toThrow(said);
      else {
        await messaging.start(60_000);
        expect(await messaging.refusal()).toMatch(said);
      }
      const found = await inspectRedis(url.toString()).then(({ writes }) => writes, String);
      expect(found).toMatch(said);
    } finally {
      await messaging.close();
    }
  });

  it('reports that a user may no longer subscribe', async () => {
    const url = new URL(redis.url);
    [url.username, url.password] = ['changing', 'secret'];
    const set = (...more: string[]) =>
      administrator.call(
        'ACL',
        'SETUSER',
        'changing',
        'on',
        '>secret',
        ...rightsIn('baton').join(' ').split(' '),
        ...more,
      );
    await set();
    const log = { info: jest.fn(), warn: jest.fn(), error: jest.fn() };
    const messaging = new RedisMessaging(url.toString(), log);
    try {
      await messaging.start(60_000);
      await set('-subscribe');
      await administrator.call('CLIENT', 'KILL', 'USER', 'changing');
      expect(await waitUntil(async () => /NOPERM/.test((await messaging.refusal()) ?? ''), Infinity)).toBe(
        true,
      );
      await set();
      await administrator.call('CLIENT', 'KILL', 'USER', 'changing');
      expect(
        await waitUntil(
          async () => log.info.mock.calls.length > 1 && (await messaging.refusal()) === undefined,
          Infinity,
        ),
      ).toBe(true);
    } finally {
      await messaging.close();
    }
  });
});
