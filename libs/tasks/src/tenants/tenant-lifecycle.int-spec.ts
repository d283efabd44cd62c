import { TaskState } from '@baton/a2a';
import type { AgentOutput, AgentRuntime, Turn } from '@baton/agents';
import {
  ScheduleStore,
  TaskStore,
  type Tenant,
  TenantRemovalStore,
  TenantStore,
  PLATFORM_ACTOR,
} from '@baton/database';
import { LimitsService } from '@baton/identity';
import { Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import type { INestApplicationContext } from '@nestjs/common';
import { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Client } from 'pg';
import {
  createDatabase,
  createRedisUrl,
  DRIVERS,
  type TestDatabase,
} from '../../../../test/support/index.js';
import { dropConditions, insertFor, tenantTables } from '../../../../test/support/sample-rows.js';
import { compileWorker, createRun } from '../runs/worker.fixture.js';
import { ticksOf } from '../schedules/ticks.js';
import { TurnEnds } from '../turns/turn-ends.js';
import { TenantLifecycle } from './tenant-lifecycle.js';
import { userMessage } from '../../../../test/support/agents/turns.js';
import { until } from '../../../../test/support/until.js';

/** An agent that works until its run is stopped, or is let go. */
class HeldRuntime implements AgentRuntime {
  readonly name = 'held';
  /** Tasks that were begun, and why each was stopped. */
  readonly begun: string[] = [];
  readonly stopped: unknown[] = [];
  letGo: () => void = () => undefined;

  async *run({ task }: Turn, signal: AbortSignal): AsyncGenerator<AgentOutput> {
    this.begun.push(task.id);
    const free = new Promise<void>((resolve) => (this.letGo = resolve));
    await Promise.race([free, once(signal, 'abort')]);
    if (signal.aborted) this.stopped.push(signal.reason);
    const status = { state: TaskState.TASK_STATE_COMPLETED, message: undefined, timestamp: undefined };
    const ids = { taskId: task.id, contextId: task.contextId };
    yield { $case: 'statusUpdate', value: { ...ids, status, metadata: undefined } };
  }
}

describe.each(DRIVERS)('a tenant, with messaging on %s', (driver) => {
  let testDatabase: TestDatabase;
  let redisUrl: string | undefined;
  let client: Client;
  let worker: INestApplicationContext;
  let runtime: HeldRuntime;
  let tenants: TenantStore;
  let removal: TenantRemovalStore;
  let lifecycle: TenantLifecycle;
  let tenant: Tenant;
  let other: Tenant;

  beforeEach(async () => {
    testDatabase = await createDatabase();
    redisUrl = driver === 'redis' ? await createRedisUrl() : undefined;
    client = new Client({ connectionString: testDatabase.url });
    await client.connect();
    await client.query(`SET baton.tenant = 'system'`);
    runtime = new HeldRuntime();
    const settings: Record<string, string> = {
      // The counter of stored bytes removes the rows of tenants without this limit.
      LIMIT_STORED_BYTES: String(2 ** 40),
      ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
    };
    worker = await (await compileWorker(testDatabase.url, () => runtime, settings)).init();
    tenants = worker.get(TenantStore, { strict: false });
    removal = worker.get(TenantRemovalStore, { strict: false });
    const schedules = worker.get(ScheduleStore, { strict: false });
    const turnEnds = worker.get(TurnEnds, { strict: false });
    const messaging = worker.get(Messaging, { strict: false });
    const limits = worker.get(LimitsService, { strict: false });
    const environment = { tokenCacheMs: 60_000 };
    lifecycle = new TenantLifecycle(
      tenants,
      removal,
      schedules,
      turnEnds,
      messaging,
      limits,
      environment,
      Logger.silent(),
    );
    tenant = await tenants.create('acme', PLATFORM_ACTOR);
    other = await tenants.create('other', PLATFORM_ACTOR);
  });
  afterEach(async () => {
    await worker.close();
    await client.end();
    await testDatabase.drop();
  });

  /** A task whose run is on the queue; its id. */
  async function order({ id: tenantId }: Tenant): Promise<string> {
    const job = await createRun(worker, tenantId);
    await worker.get(Messaging, { strict: false }).enqueueRuns([job]);
    return job.taskId;
  }
  const begun = async (taskId: string): Promise<void> => {
    await until(() => runtime.begun.includes(taskId));
  };
  const stateOf = async ({ id }: Tenant, taskId: string): Promise<TaskState | undefined> =>
    (await worker.get(TaskStore, { strict: false }).get(id, taskId))?.task.status?.state;
  /** Tables with rows of the tenant, wherever the id of the tenant stands in them. */
  async function tablesWith(id: string): Promise<string[]> {
    const { rows: tables } = await client.query<{ name: string }>(
      `SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema')`,
    );
    const found: string[] = [];
    for (const { name } of tables) {
      const { rowCount } = await client.query(
        `SELECT FROM ${name} AS each WHERE strpos(each::text, $1) > 0 LIMIT 1`,
        [id],
      );
      if (rowCount) found.push(name);
    }
    return found;
  }
  /** Keys of Redis that name the tenant, or whose values do. */
  async function keysWith(id: string): Promise<string[]> {
    if (redisUrl === undefined) return [];
    const redis = new Redis(redisUrl);
    try {
      const found: string[] = [];
      for (const key of await redis.keys('*')) {
        // Null for a key that has just expired; the types of ioredis do not say so.
        const dumped = (await redis.dumpBuffer(key)) as Buffer | null;
        if (dumped && (key.includes(id) || dumped.includes(id))) found.push(key);
      }
      return found;
    } finally {
      redis.disconnect();
    }
  }

  it('that is suspended keeps its tasks, unless they are to be stopped', async () => {
    const running = await order(tenant);
    await begun(running);
    const queued = await order(tenant);
    expect(
      await lifecycle.suspend('acme', { reason: 'unpaid bill', stop: false }, PLATFORM_ACTOR),
    ).toMatchObject({
      canceledTasks: 0,
      tenant: { suspendedReason: 'unpaid bill', suspendedAt: expect.any(Date) as Date },
    });
    runtime.letGo();
    await begun(queued);
    expect(await stateOf(tenant, running)).toBe(TaskState.TASK_STATE_COMPLETED);
    const theirs = await order(other);
    expect((await lifecycle.suspend('acme', { stop: true }, PLATFORM_ACTOR)).canceledTasks).toBe(1);
    expect(await stateOf(tenant, queued)).toBe(TaskState.TASK_STATE_CANCELED);
    // The slot is free again.
    await begun(theirs);
    expect(runtime.stopped).toEqual(['canceled']);
    runtime.letGo();
    expect(await lifecycle.resume('acme', PLATFORM_ACTOR)).toMatchObject({
      suspendedAt: null,
      suspendedReason: null,
    });
    await expect(lifecycle.suspend('nobody', { stop: false }, PLATFORM_ACTOR)).rejects.toMatchObject({
      kind: 'not-found',
    });
    await expect(lifecycle.resume('nobody', PLATFORM_ACTOR)).rejects.toMatchObject({ kind: 'not-found' });
  });

  it('that is deleted is in no table, and not on the queue', async () => {
    const { id } = tenant;
    const nextAt = new Date(Date.now() + 3_600_000);
    const schedule = await worker.get(ScheduleStore, { strict: false }).create(
      {
        tenantId: id,
        id: randomUUID(),
        name: 'report',
        agent: 'echo',
        cron: '0 0 * * *',
        at: null,
        message: userMessage('hi', { messageId: '', contextId: '', taskId: '' }),
        timeZone: 'UTC',
        overlap: 'skip',
        missed: 'skip',
        context: 'new',
        startsAt: null,
        endsAt: null,
        maxCount: null,
        paused: false,
        nextAt,
      },
      PLATFORM_ACTOR,
    );
    await worker.get(Messaging, { strict: false }).setTicks(ticksOf(schedule));
    const running = await order(tenant);
    await begun(running);
    for (let tasks = 0; tasks < 5; tasks += 1) await order(tenant);
    const theirs = await order(other);
    expect(await tablesWith(id)).toEqual(expect.arrayContaining(['tasks', 'schedules', 'tenants']));

    const deleted = await lifecycle.delete('acme', undefined, PLATFORM_ACTOR);
    expect(deleted).toMatchObject({ id, slug: 'acme', canceledTasks: 6, rows: { tasks: 6, schedules: 1 } });
    // The jobs of its runs are still delivered, and find nothing.
    await begun(theirs);
    // A worker may have begun a queued one while the others were canceled.
    expect(new Set(runtime.stopped)).toEqual(new Set(['canceled']));
    expect(await stateOf(other, theirs)).toBe(TaskState.TASK_STATE_WORKING);
    // After `ORPHAN_MS` the sweeper enqueues a waiting run again, behind theirs. Such a job leaves the queue when a slot is free.
    runtime.letGo();
    await until(async () => (await worker.get(Messaging, { strict: false }).queueDepth()).waiting === 0);
    expect(await tablesWith(id)).toEqual([]);
    expect(await keysWith(id)).toEqual([]);
    await expect(lifecycle.delete('acme', undefined, PLATFORM_ACTOR)).rejects.toMatchObject({
      kind: 'not-found',
    });
    // The name is free again.
    expect((await tenants.create('acme', PLATFORM_ACTOR)).id).not.toBe(id);
  });

  it('that is deleted leaves no row in any table; an interrupted deletion is continued', async () => {
    await dropConditions(client);
    const names = await tenantTables(client);
    for (const name of names) {
      for (const { id } of [tenant, tenant, tenant, other]) {
        await client
          .query(await insertFor(client, { name, tenantColumn: 'tenant_id' }, id))
          .catch((error: unknown) => {
            // A table whose key is the tenant has one row of it.
            if ((error as { code?: string }).code !== '23505') throw error;
          });
      }
    }
    const countOf = async (id: string): Promise<Record<string, number>> => {
      const counts: Record<string, number> = {};
      for (const name of names) {
        const { rows } = await client.query<{ n: number }>(
          `SELECT count(*)::int AS n FROM ${name} WHERE tenant_id = $1`,
          [id],
        );
        counts[name] = rows[0]?.n ?? 0;
      }
      return counts;
    };
    const before = await countOf(tenant.id);
    const theirs = await countOf(other.id);
    expect(Object.values(before).every((rows) => rows > 0)).toBe(true);
    expect((await removal.tables(tenant.id)).toSorted()).toEqual(names);

    // The process dies when half of the tables are empty.
    const deleteSlice = jest.spyOn(removal, 'deleteSlice');
    const real = deleteSlice.getMockImplementation() ?? TenantRemovalStore.prototype.deleteSlice;
    let slices = 0;
    deleteSlice.mockImplementation(async (...of) => {
      slices += 1;
      if (slices > names.length) throw new Error('killed');
      return real.apply(removal, of);
    });
    await expect(lifecycle.delete('acme', undefined, PLATFORM_ACTOR)).rejects.toThrow('killed');
    deleteSlice.mockRestore();
    const half = Object.values(await countOf(tenant.id)).filter((rows) => rows > 0).length;
    expect(half).toBeGreaterThan(0);
    expect(half).toBeLessThan(names.length);
    for (const again of [
      lifecycle.resume('acme', PLATFORM_ACTOR),
      lifecycle.suspend('acme', { stop: false }, PLATFORM_ACTOR),
    ]) {
      await expect(again).rejects.toMatchObject({ kind: 'conflict' });
    }

    await lifecycle.delete('acme', undefined, PLATFORM_ACTOR);
    expect(await tablesWith(tenant.id)).toEqual([]);
    expect(await countOf(other.id)).toEqual(theirs);
  });
});
