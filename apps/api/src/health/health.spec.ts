import { get } from 'node:http';
import { ProtocolError } from '@baton/a2a';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { request, taskItem } from '../../../../test/support/api/samples.js';

let api: FakeApi;

beforeEach(async () => {
  api = await startFakeApi();
});
afterEach(() => api.close());

const readyz = async () => {
  const response = await fetch(`${api.managementUrl}/readyz`);
  const { ready, checks } = (await response.json()) as { ready: boolean; checks: Record<string, string> };
  return { status: response.status, ready, checks };
};

describe('health', () => {
  it('is alive as long as it answers, with any fault behind it', async () => {
    api.database.ping = async () => Promise.reject(new Error('gone'));
    const response = await fetch(`${api.url}/healthz`);
    expect([response.status, await response.json()]).toEqual([200, { status: 'ok' }]);
  });

  it('answers callers with yes or no, and operators with the reason', async () => {
    const asCaller = async () => {
      const response = await fetch(`${api.url}/readyz`);
      return [response.status, response.headers.get('retry-after'), await response.json()];
    };
    expect(await asCaller()).toEqual([200, null, { status: 'ok' }]);
    await api.close();
    api = await startFakeApi();
    api.database.ping = async () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.7:5432'));
    expect(await asCaller()).toEqual([503, '2', { status: 'unavailable' }]);
    expect((await readyz()).checks.postgres).toBe('connect ECONNREFUSED 10.0.0.7:5432');
  });

  it('is ready when everything behind it answers', async () => {
    expect(await readyz()).toEqual({
      status: 200,
      ready: true,
      checks: { postgres: 'ok', migrations: 'ok', 'messaging (postgres)': 'ok', server: 'ok' },
    });
  });

  it('is ready without any worker, for it can still accept tasks, and warns of it', async () => {
    api.database.load = async () => ({ liveWorkers: 0, oldestWaitingSeconds: 12.3 });
    const response = await fetch(`${api.managementUrl}/readyz`);
    expect([response.status, await response.json()]).toMatchObject([
      200,
      { ready: true, warnings: ['no worker is alive: tasks are accepted and wait; the oldest for 12 s'] },
    ]);
  });

  it('warns that Postgres has no connection left, and stays ready: most calls need no new one', async () => {
    api.database.isFull = true;
    const response = await fetch(`${api.managementUrl}/readyz`);
    const warnings = [
      'postgres refuses new connections, because there are too many: some calls fail with 503',
    ];
    expect([response.status, await response.json()]).toMatchObject([200, { ready: true, warnings }]);
  });

  it('warns that Postgres may only be read, and stays ready: reads still work', async () => {
    api.database.isReadOnly = true;
    const response = await fetch(`${api.managementUrl}/readyz`);
    const warnings = [
      expect.stringMatching(/^postgres may only be read .*: calls that write fail with 503$/),
    ];
    expect([response.status, await response.json()]).toMatchObject([200, { ready: true, warnings }]);
  });

  it('asks its services once, however many ask it at the same time', async () => {
    let pings = 0;
    api.database.ping = async () => void (pings += 1);
    await Promise.all(Array.from({ length: 20 }, readyz));
    // The answer is kept for a second; a slow machine may need more than one.
    expect(pings).toBeLessThan(20);
  });

  it('names each blocking object', async () => {
    api.database.ping = async () => Promise.reject(new Error('connection refused'));
    api.database.pendingMigrations = async () => ['0002_runs'];
    api.messaging.ping = async () => Promise.reject(new Error('no route'));
    const { status, ready, checks } = await readyz();
    expect([status, ready]).toEqual([503, false]);
    expect(checks).toMatchObject({ postgres: 'connection refused', 'messaging (postgres)': 'no route' });
    expect(checks.migrations).toContain('npm run migrate');
    expect(checks.migrations).toContain('0002_runs');
  });

  it('counts queue, runs, streams and requests for Prometheus', async () => {
    api.operations.sendStreamingMessage = async function* () {
      yield [taskItem()];
      await new Promise(() => undefined);
    };
    const leaving = new AbortController();
    const stream = await fetch(`${api.url}/agents/echo`, {
      method: 'POST',
      headers: { authorization: 'Bearer caller', 'content-type': 'application/json' },
      body: JSON.stringify(request.stream),
      signal: leaving.signal,
    });
    await api.rpc({});
    const response = await fetch(`${api.managementUrl}/metrics`);
    expect(response.headers.get('content-type')).toMatch(/^text\/plain/);
    const text = await response.text();
    expect(stream.status).toBe(200);
    for (const line of [
      'baton_queue_depth{state="waiting"} 3',
      'baton_runs{state="queued"} 2',
      'baton_open_streams 1',
      'baton_request_duration_seconds_count{route="/agents/:agent",method="POST",status="200"} 1',
    ]) {
      expect(text).toContain(line);
    }
    leaving.abort();
  });

  it('counts calls by operation and kind of error, with no label that a caller wrote', async () => {
    api.operations.getTask = async () => Promise.reject(ProtocolError.taskNotFound('gone'));
    await api.rpc(request.get);
    await api.rpc({ ...request.get, method: 'Nonsense' });
    const text = await (await fetch(`${api.managementUrl}/metrics`)).text();
    expect(text).toContain('baton_call_duration_seconds_count{operation="getTask",error="task-not-found"} 1');
    expect(text).not.toContain('Nonsense');
  });

  it('has no management port unless one is set, and keeps it open while callers are sent away', async () => {
    const without = await startFakeApi({ MANAGEMENT_PORT: '' });
    expect(without.managementUrl).toBe('');
    await without.close();
    let finish = (): void => undefined;
    const started = new Promise<void>((resolve) => {
      api.operations.getTask = async () => {
        resolve();
        await new Promise<void>((done) => (finish = done));
        throw new Error('over');
      };
    });
    const call = api.rpc(request.get);
    await started;
    const closed = api.close();
    expect(await readyz()).toMatchObject({ status: 503, checks: { server: 'shutting down' } });
    finish();
    await call;
    await closed;
    await expect(fetch(`${api.managementUrl}/metrics`)).rejects.toThrow();
    api = await startFakeApi();
  });
});

describe('the management port', () => {
  it('answers no web page that has given its name the address of the port', async () => {
    const api = await startFakeApi({ MANAGEMENT_HOSTS: 'ops.example.com' });
    const port = Number(new URL(api.managementUrl).port);
    const statusFor = (host: string, path = '/metrics') =>
      new Promise<{ status: number; body: string }>((resolve, reject) => {
        get({ port, host: '127.0.0.1', path, headers: { host } }, (response) => {
          let body = '';
          response.setEncoding('utf8').on('data', (text: string) => (body += text));
          response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
        }).on('error', reject);
      });
    try {
      for (const host of [`127.0.0.1:${port}`, 'localhost', 'api:9090', 'ops.example.com:9090'])
        expect((await statusFor(host)).status).toBe(200);
      for (const path of ['/metrics', '/readyz', '/v1/admin/tenants', '/console', '/none']) {
        const { status, body } = await statusFor(`evil.example:${port}`, path);
        expect([path, status]).toEqual([path, 421]);
        expect(body).toContain('MANAGEMENT_HOSTS');
        expect(body).not.toContain('baton_');
      }
      // The public port is for names of all kinds.
      expect((await fetch(`${api.url}/healthz`)).status).toBe(200);
    } finally {
      await api.close();
    }
  });
});
