import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { asAdministrator } from '../../../../../test/support/database.js';
import { Inbox, inTime } from '../../inbox.fixture.js';
import { Installation, signalOf, someRun } from '../../installation.fixture.js';
import { CuttingProxy } from './cutting-proxy.fixture.js';
import type { ControlMessage, Messaging, RunJob, TaskSignal } from '../../messaging.js';

describe('messaging when Postgres fails', () => {
  const [tenantId, taskId] = [randomUUID(), randomUUID()];
  let installation: Installation;
  let database: string;
  let api: Messaging;
  let worker: Messaging;
  let runs: Inbox<RunJob>;

  beforeEach(async () => {
    installation = await Installation.on('postgres');
    database = new URL(installation.options.databaseUrl).pathname.slice(1);
    [api, worker] = await Promise.all([installation.process(), installation.process()]);
    runs = new Inbox();
  });
  afterEach(async () => {
    await allowConnections(true);
    await installation.close();
  });

  const allowConnections = (allowed: boolean): Promise<void> =>
    asAdministrator(`ALTER DATABASE ${database} ALLOW_CONNECTIONS ${allowed}`);

  /** Resolves when all have ended: a signal that is sent on one that is about to end is lost. */
  const cutConnections = (): Promise<void> =>
    asAdministrator(
      `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '${database}'`,
    );

  const connectionBack = (messaging: Messaging): Promise<void> =>
    new Promise((resolve) => void messaging.onSignalsMissed(resolve));

  it('starts many processes at once on an empty database', async () => {
    const fresh = await Installation.on('postgres');
    try {
      const processes = await Promise.all(Array.from({ length: 5 }, () => fresh.process()));
      processes[0]?.consumeRuns(1, async (job) => runs.push(job));
      await processes[4]?.enqueueRuns([someRun()]);
      await runs.reach(1);
    } finally {
      await fresh.close();
    }
  });

  it('says whose schema of BullMQ its role may not use, and what to do', async () => {
    const fresh = await Installation.on('postgres');
    const client = new Client({ connectionString: fresh.options.databaseUrl });
    try {
      await client.connect();
      await client.query('CREATE SCHEMA bullmq; REVOKE ALL ON SCHEMA bullmq FROM CURRENT_USER');
      await expect(fresh.process()).rejects.toThrow(
        /answers: the schema "bullmq" belongs to the role "\w+", .+ run DROP SCHEMA bullmq CASCADE as that role/,
      );
    } finally {
      await client.end();
      await fresh.close();
    }
  });

  it('comes back after all its connections were cut: runs and signals flow, relays are notified', async () => {
    const signals = new Inbox<TaskSignal>();
    const control = new Inbox<ControlMessage>();
    worker.consumeRuns(10, async (job) => runs.push(job));
    await api.subscribeTask(tenantId, taskId, signals.push).inForce;
    await api.subscribeControl(control.push);
    await api.enqueueRuns([someRun()]);
    await runs.reach(1);

    const back = Promise.all([connectionBack(api), connectionBack(worker)]);
    await cutConnections();
    await back;

    await worker.publishTask(tenantId, taskId, signalOf(1));
    await worker.publishControl({ type: 'catalog-changed', tenantId: null });
    await api.enqueueRuns([someRun()]);
    await Promise.all([signals.reach(1), control.reach(1), runs.reach(2)]);
  });

  it('notifies all relays that signals were lost while one process alone had no connection', async () => {
    const missed = new Promise<void>((resolve) => void api.onSignalsMissed(resolve));
    await allowConnections(false);
    // Those of the listeners stay: no relay notices anything by itself.
    await asAdministrator(
      `SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity
       WHERE datname = '${database}' AND query NOT ILIKE 'LISTEN%'`,
    );
    await worker.publishTask(tenantId, taskId, signalOf(1));
    await allowConnections(true);
    await missed;
  });

  it('starts although each connection takes longer than a caller waits for one', async () => {
    const proxy = await CuttingProxy.before(installation.options.databaseUrl);
    proxy.delayMs = 2_000;
    try {
      const behind = installation.create({ databaseUrl: proxy.url });
      await behind.start(120_000);
      behind.consumeRuns(1, async (job) => runs.push(job));
      await api.enqueueRuns([someRun()]);
      await runs.reach(1);
      await behind.close();
    } finally {
      await proxy.close();
    }
  });

  it('survives a connection that Postgres ends in the packet of ReadyForQuery', async () => {
    const proxy = await CuttingProxy.before(installation.options.databaseUrl);
    try {
      const behind = installation.create({ databaseUrl: proxy.url });
      await behind.start(120_000);
      const signals = new Inbox<TaskSignal>();
      await behind.subscribeTask(tenantId, taskId, signals.push).inForce;
      const back = connectionBack(behind);
      proxy.cut(5);
      await back;
      await worker.publishTask(tenantId, taskId, signalOf(1));
      await signals.reach(1);
      expect(proxy.refusals).toBe(5);
    } finally {
      await proxy.close();
    }
  });

  it('refuses runs within two seconds while Postgres is away, and works on its return', async () => {
    const back = Promise.all([connectionBack(api), connectionBack(worker)]);
    await allowConnections(false);
    await cutConnections();

    await expect(inTime(2_000, api.enqueueRuns([someRun()]))).rejects.toThrow(/^(?!Not done within)/);
    await expect(inTime(2_000, api.ping())).rejects.toThrow(
      /^Postgres at 127\.0\.0\.1:\d+ (does not answer|answers): /,
    );
    await api.publishTask(tenantId, taskId, signalOf(1));
    worker.consumeRuns(10, async (job) => runs.push(job));

    await allowConnections(true);
    await back;
    await api.enqueueRuns([someRun()]);
    await runs.reach(1);
  });
});
