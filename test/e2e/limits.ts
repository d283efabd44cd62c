import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { type Opened, openRequest } from '../support/open-request.js';
import { DRIVERS } from '../support/redis.js';
import { driversOf, nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { shareStack } from '../support/shared-stack.js';
import type { Stack, TestTenant } from '../support/stack.js';
import { until } from '../support/until.js';

/** Longer than any test: a change is in force because every process gets a control message. */
const SETTINGS = { TOKEN_CACHE_MS: '600000', WORKER_CONCURRENCY: '100' };
const FOR_LONG = { echo: { chunks: 2, delayMs: 300_000 } };

describe.each(driversOf('redis'))('limits on %s', (driver) => {
  const startStack = shareStack(driver, SETTINGS, { apis: 2 });
  let stack: Stack;
  let client: Client;
  const open: Opened[] = [];

  beforeAll(async () => {
    stack = await startStack();
    client = new Client({ connectionString: stack.database.url });
    await client.connect();
    await client.query(`SET baton.tenant = 'system'`);
  });
  afterAll(() => client.end());
  afterEach(() => {
    for (const each of open.splice(0)) each.close();
  });

  const limit = (tenant: TestTenant, ...options: string[]) =>
    stack.baton('tenants', 'limits', tenant.slug, ...options);

  async function limited(...options: string[]): Promise<TestTenant> {
    const tenant = await stack.createTenant();
    await limit(tenant, ...options);
    return tenant;
  }

  /** A stream that is slow to begin is granted before its task is made. */
  const untilTasks = async (count: number, tenant: TestTenant): Promise<void> => {
    await until(async () => (await tasksOf(tenant)) >= count);
    expect(await tasksOf(tenant)).toBe(count);
  };
  const tasksOf = async ({ slug }: TestTenant): Promise<number> => {
    const text =
      'SELECT count(*)::int AS n FROM tasks WHERE tenant_id = (SELECT id FROM tenants WHERE slug = $1)';
    return (await client.query<{ n: number }>(text, [slug])).rows[0]!.n;
  };

  const stream = async (api: number, { token }: TestTenant): Promise<Opened> => {
    const params = sendParams('hi', { metadata: FOR_LONG });
    const opened = await openRequest(stack.url(api), token, { method: 'SendStreamingMessage', params });
    open.push(opened);
    return opened;
  };
  const streams = (count: number, tenant: TestTenant): Promise<Opened[]> =>
    Promise.all(Array.from({ length: count }, (_, i) => stream(i % 2, tenant)));
  const granted = (all: Opened[]): Opened[] => all.filter(({ status }) => status === 200);

  /** Ask again, as a caller does that was refused, until it is let in. */
  async function untilGranted(api: number, tenant: TestTenant): Promise<Opened> {
    for (;;) {
      const opened = await stream(api, tenant);
      if (opened.status === 200) return opened;
      await opened.closed;
      await delay(20);
    }
  }

  async function expectRefusal(refused: Opened, name: string, max: number): Promise<void> {
    expect(refused.status).toBe(429);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1);
    expect(await refused.json).toMatchObject({
      error: {
        code: -32029,
        message: expect.stringContaining(`the limit ${name} of this tenant is reached`) as unknown,
        data: [
          { reason: 'LIMIT_EXCEEDED', metadata: { limit: name, max: String(max) } },
          { retryDelay: expect.stringMatching(/^\d+s$/) as unknown },
        ],
      },
    });
  }

  // Postgres alone decides this: once is enough.
  if (driver === DRIVERS[0]) {
    describe('open streams', () => {
      it('are exactly as many as the limit on both APIs together; refused ones have made no task', async () => {
        const [tenant, free] = await Promise.all([limited('--open-streams', '5'), stack.createTenant()]);
        const [all, others] = await Promise.all([streams(40, tenant), streams(10, free)]);
        expect([granted(all).length, granted(others).length]).toEqual([5, 10]);
        const refused = all.filter(({ status }) => status !== 200);
        expect(refused).toHaveLength(35);
        for (const each of refused) await expectRefusal(each, 'openStreams', 5);
        expect((await refused[0]!.json).id).toBe('mine');
        await untilTasks(5, tenant);

        granted(all)[0]!.close();
        await untilGranted(1, tenant);
        expect(granted(await streams(4, tenant))).toHaveLength(0);
        await untilTasks(6, tenant);
      });

      nightlyIt('count what was open before there was a limit', async () => {
        const tenant = await stack.createTenant();
        const before = await streams(3, tenant);
        await limit(tenant, '--open-streams', '3');
        for (let api = 0, refused = 0; refused < 4; api = 1 - api) {
          const next = await stream(api, tenant);
          if (next.status === 429) refused += 1;
          else refused = 0;
          expect(open.length).toBeLessThan(100);
          next.close();
        }
        for (const each of before) each.close();
        await untilGranted(0, tenant);
      });

      nightlyIt('of a killed API give their places back', async () => {
        const tenant = await limited('--open-streams', '4');
        const all = granted(await streams(12, tenant));
        const third = await stack.addApi();
        expect(all).toHaveLength(4);
        for (const each of all) each.close();
        const doomed = stack.apis.indexOf(third);
        const lost = [];
        for (let i = 0; i < 4; i++) lost.push(await untilGranted(doomed, tenant));
        expect((await stream(0, tenant)).status).toBe(429);
        await third.kill();
        stack.apis.splice(doomed, 1);
        await Promise.all(lost.map(({ closed }) => closed));
        await untilGranted(0, tenant);
        const back = await streams(10, tenant);
        expect(granted(back)).toHaveLength(3);
      });
    });
  }

  describe('requests per second', () => {
    const requests = (count: number, { token }: TestTenant): Promise<Opened[]> =>
      Promise.all(
        Array.from({ length: count }, (_, i) =>
          openRequest(stack.url(i % 2), token, { method: 'GetTask', params: { id: randomUUID() } }),
        ),
      );

    it('are counted on both APIs together', async () => {
      const [tenant, free] = await Promise.all([
        limited('--requests-per-second', '10'),
        stack.createTenant(),
      ]);
      const since = performance.now();
      const [all, others] = await Promise.all([requests(40, tenant), requests(40, free)]);
      // A second begins with its first request, so this many have begun at the most.
      const seconds = Math.floor((performance.now() - since) / 1000) + 1;
      const let_in = granted(all).length;
      expect(let_in).toBeGreaterThanOrEqual(10);
      expect(let_in).toBeLessThanOrEqual(10 * seconds);
      expect(granted(others)).toHaveLength(40);
      const refused = all.find(({ status }) => status === 429)!;
      await expectRefusal(refused, 'requestsPerSecond', 10);
      expect((await refused.json).id).toBeNull();
    });

    it('are counted for cards and for the log of requests as well', async () => {
      const { token } = await limited('--requests-per-second', '1');
      const get = async (path: string) => {
        const headers = { authorization: `Bearer ${token}` };
        const response = await fetch(`${stack.apis[0]!.url}${path}`, { headers });
        return { status: response.status, text: await response.text(), headers: response.headers };
      };
      for (const path of ['/agents/echo/.well-known/agent-card.json', '/v1/tasks']) {
        let answer = await get(path);
        while (answer.status === 200) answer = await get(path);
        expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '1']);
        expect(answer.text).toContain('requestsPerSecond');
      }
    });

    if (driver === 'redis') {
      it('are held by each API for itself while Redis is away', async () => {
        const tenant = await limited('--requests-per-second', '5');
        await requests(2, tenant);
        await stack.redis!.crash();
        const since = performance.now();
        const all = await requests(60, tenant);
        const seconds = Math.floor((performance.now() - since) / 1000) + 1;
        await stack.redis!.restart();
        expect(all.every(({ status }) => status === 200 || status === 429)).toBe(true);
        expect(granted(all).length).toBeLessThanOrEqual(2 * 5 * seconds);
        expect(granted(all).length).toBeGreaterThan(0);
      });
    }
  });

  it('a smaller body is refused at once on both APIs when the limit is set, and taken when it is lifted', async () => {
    const [tenant, free] = await Promise.all([stack.createTenant(), stack.createTenant()]);
    const params = sendParams('x'.repeat(4000));
    const send = (api: number, { token }: TestTenant) =>
      openRequest(stack.url(api), token, { method: 'SendMessage', params });
    const until = async (api: number, status: number): Promise<Opened> => {
      for (;;) {
        const answer = await send(api, tenant);
        if (answer.status === status) return answer;
        await answer.closed;
        await delay(20);
      }
    };
    expect((await send(0, tenant)).status).toBe(200);
    expect((await send(1, tenant)).status).toBe(200);
    await limit(tenant, '--body-bytes', '1000');
    for (const api of [0, 1]) {
      const { error } = await (await until(api, 413)).json;
      expect(error?.message).toContain('the limit bodyBytes of this tenant, 1000 bytes');
    }
    expect((await send(0, free)).status).toBe(200);
    await limit(tenant, '--default', 'body-bytes');
    await Promise.all([until(0, 200), until(1, 200)]);
  });

  // Postgres alone decides this: once is enough.
  if (driver === DRIVERS[0]) {
    it('what a tenant has stored is held on both APIs together; refused sends have made no task', async () => {
      const [tenant, free] = await Promise.all([limited('--stored-bytes', '40000'), stack.createTenant()]);
      const send = (api: number, { token }: TestTenant) => {
        const configuration = { returnImmediately: true };
        const params = { ...sendParams('x'.repeat(6000)), configuration };
        return openRequest(stack.url(api), token, { method: 'SendMessage', params });
      };
      const sends = (who: TestTenant) => Promise.all(Array.from({ length: 20 }, (_, i) => send(i % 2, who)));
      const [all, others] = await Promise.all([sends(tenant), sends(free)]);
      const sent = granted(all).length;
      expect(sent).toBeGreaterThan(0);
      // Of a limit of 40,000 bytes at most six fit.
      expect(sent).toBeLessThanOrEqual(6);
      expect(await tasksOf(tenant)).toBe(sent);
      for (const each of all.filter(({ status }) => status !== 200)) {
        await expectRefusal(each, 'storedBytes', 40_000);
        expect(each.headers['retry-after']).toBe('60');
      }
      expect(granted(others)).toHaveLength(20);
      await limit(tenant, '--stored-bytes', '1000000');
      for (let status = 429; status !== 200;) ({ status } = await send(1, tenant));
    });
  }

  // Postgres alone decides this: once is enough.
  if (driver === DRIVERS[0]) {
    describe('events', () => {
      const run = async (tenant: TestTenant, echo: object) => {
        const caller = new RawCaller(stack.url(0), tenant.token);
        const { result } = await caller.call('SendMessage', sendParams('hello', { metadata: { echo } }));
        const { state, message } = result!.task.status as {
          state: string;
          message?: { parts: { text: string }[] };
        };
        const [artifact] = (result!.task.artifacts ?? []) as { parts: unknown[] }[];
        return { state, why: message?.parts[0]?.text, chunks: artifact?.parts.length };
      };

      it('of one run are as many as the limit, even if they come all at once; then the run fails and says why', async () => {
        const [tenant, free] = await Promise.all([limited('--events-per-run', '10'), stack.createTenant()]);
        expect(await run(tenant, { chunks: 9 })).toMatchObject({ state: 'TASK_STATE_COMPLETED', chunks: 9 });
        expect(await run(tenant, { chunks: 5000 })).toEqual({
          state: 'TASK_STATE_FAILED',
          why: 'The agent sent more events than the limit eventsPerRun of this tenant allows, which is 10',
          chunks: 10,
        });
        expect(await run(free, { chunks: 20 })).toMatchObject({ state: 'TASK_STATE_COMPLETED', chunks: 20 });
      });

      it('are as large as the limit; then the run fails and says why', async () => {
        const tenant = await limited('--event-bytes', '2000');
        expect(await run(tenant, { chunkBytes: 1000 })).toMatchObject({ state: 'TASK_STATE_COMPLETED' });
        expect(await run(tenant, { chunkBytes: 3000 })).toMatchObject({
          state: 'TASK_STATE_FAILED',
          why: expect.stringMatching(
            /^The agent sent an event of 3\d\d\d bytes, and the limit eventBytes .* 2000$/,
          ) as unknown,
        });
      });
    });
  }
});
