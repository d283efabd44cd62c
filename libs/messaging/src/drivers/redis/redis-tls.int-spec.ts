import { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import { DRIVERS, startTlsRedis, type TlsRedis } from '../../../../../test/support/index.js';
import { Inbox } from '../../inbox.fixture.js';
import { Installation, signalOf, someRun } from '../../installation.fixture.js';
import type { RunJob, TaskSignal } from '../../messaging.js';
import { inspectRedis } from './inspect-redis.js';
import { redisServer } from './redis-server.js';

// A machine without Redis tests Postgres alone.
const withRedis = DRIVERS.includes('redis') ? describe : describe.skip;
const REFUSED =
  /does not answer: its certificate is refused \(.+\): name the file of its CA in the URL \(cacert\)/;

withRedis('messaging on a Redis behind TLS', () => {
  let redis: TlsRedis;
  beforeAll(async () => {
    redis = await startTlsRedis();
  });
  afterAll(() => redis.remove());

  const withCa = (url: string, file = redis.caFile): string => `${url}?cacert=${encodeURIComponent(file)}`;

  it('hands out runs, carries signals and counts, on encrypted connections alone', async () => {
    const installation = await Installation.on('redis', withCa(redis.tlsUrl));
    const administrator = new Redis(redis.url);
    try {
      const [api, worker] = await Promise.all([installation.process(), installation.process()]);
      const [tenantId, taskId] = [randomUUID(), randomUUID()];
      const [runs, signals] = [new Inbox<RunJob>(), new Inbox<TaskSignal>()];
      worker.consumeRuns(10, async (job) => runs.push(job));
      await api.subscribeTask(tenantId, taskId, signals.push).inForce;
      await api.enqueueRuns([someRun(), someRun()]);
      await worker.publishTask(tenantId, taskId, signalOf(1));
      await Promise.all([runs.reach(2), signals.reach(1)]);
      expect((await api.spend('key', 1, 60)).allowed).toBe(true);
      expect((await worker.spend('key', 1, 60)).allowed).toBe(false);
      const clients = String(await administrator.client('LIST'));
      const ofBaton = clients.split('\n').filter((line) => / name=baton/.test(line));
      expect(ofBaton.length).toBeGreaterThanOrEqual(5);
      const { port } = new URL(redis.tlsUrl);
      expect(ofBaton.filter((line) => !line.includes(` laddr=127.0.0.1:${port} `))).toEqual([]);
      expect(await inspectRedis(withCa(redis.tlsUrl))).toMatchObject({ writes: true });
    } finally {
      administrator.disconnect();
      await installation.close();
    }
  });

  it.each([
    ['with a certificate of another CA', () => withCa(redis.tlsUrl, redis.otherCaFile)],
    ['without the CA in the URL', () => redis.tlsUrl],
    [
      'under a name that the certificate does not have',
      () => withCa(redis.tlsUrl.replace('127.0.0.1', 'localhost')),
    ],
  ])('is refused %s: the log and the doctor say what to do', async (_, url) => {
    const installation = await Installation.on('redis', url());
    try {
      await expect(installation.create().start(500)).rejects.toThrow(REFUSED);
      expect(installation.warnings.join('\n')).toMatch(/Redis is not available .*its certificate is refused/);
      const { password } = new URL(redis.url);
      expect(installation.warnings.join('\n')).not.toContain(password);
      await expect(inspectRedis(url())).rejects.toThrow(REFUSED);
    } finally {
      await installation.close();
    }
  });

  it('survives that a connection is closed in the middle of the handshake', async () => {
    const { options } = redisServer(withCa(redis.tlsUrl.replace('127.0.0.1', 'localhost')), 'baton');
    const uncaught = jest.fn();
    process.on('uncaughtExceptionMonitor', uncaught);
    const open = async (afterMs: number): Promise<void> => {
      const client = new Redis({ ...options, lazyConnect: true, retryStrategy: () => 1 });
      client.on('error', () => undefined);
      const over = new Promise<void>((resolve) => client.once('end', () => resolve()));
      client.connect().catch(() => undefined);
      setTimeout(() => client.disconnect(), afterMs);
      await over;
    };
    await Promise.all(Array.from({ length: 200 }, (_, n) => open(n % 50)));
    process.off('uncaughtExceptionMonitor', uncaught);
    expect(uncaught).not.toHaveBeenCalled();
  });

  it('names a file of the CA that is not there', async () => {
    const url = withCa(redis.tlsUrl, '/nowhere/ca.pem');
    await expect(inspectRedis(url)).rejects.toThrow(
      'The file /nowhere/ca.pem of REDIS_URL (cacert) cannot be read (ENOENT): name one that this process can read',
    );
  });
});
