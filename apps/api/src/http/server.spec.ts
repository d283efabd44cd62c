import { connect } from 'node:net';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { rawRequest } from '../../../../test/support/api/raw-request.js';
import { request, sampleTask } from '../../../../test/support/api/samples.js';

let api: FakeApi;

const start = async (): Promise<void> => {
  api = await startFakeApi();
  api.operations.getTask = async () => sampleTask();
};

/** One API for all tests of a `describe`. */
function startOnce(): void {
  beforeAll(start);
  afterAll(() => api.close());
}

/** For tests that read the log of an API or close it. */
function startForEach(): void {
  beforeEach(start);
  afterEach(() => api.close());
}

/** The whole answer to bytes written as they are. */
function raw(text: string): Promise<string> {
  const { hostname, port } = new URL(api.url);
  return new Promise((resolve, reject) => {
    let answer = '';
    const socket = connect(Number(port), hostname, () => socket.write(text));
    socket.setEncoding('utf8').on('data', (chunk: string) => (answer += chunk));
    socket.on('end', () => resolve(answer)).on('error', reject);
  });
}

describe('what the server does with a URL', () => {
  startOnce();

  it.each(['/agents', '/agents/echo/nothing', '/v1/a2a/foo', '/agents/echo/..%2f..'])(
    'answers 404 in JSON for %s',
    async (path) => {
      const response = await fetch(api.url + path, { method: 'POST', body: '{}' });
      expect([response.status, await response.json()]).toMatchObject([
        404,
        { error: { code: 404, status: 'NOT_FOUND' } },
      ]);
    },
  );

  it.each(['/agents/%zz', '/agents/%', '/%c0%ae'])(
    'answers 4xx in JSON for the malformed %s',
    async (path) => {
      const answer = await raw(`GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1.1 4\d\d /);
      expect(JSON.parse(answer.slice(answer.indexOf('{')).replace(/\r\n0\r\n\r\n$/, ''))).toHaveProperty(
        'error',
      );
    },
  );

  it('answers 414 for a name longer than any agent has', async () => {
    expect((await api.rpc(request.get, {}, `/agents/${'a'.repeat(300)}`)).status).toBe(414);
  });

  it('answers at the root with a page for browsers, and with its endpoints for programs', async () => {
    const ask = (path: string, accept: string, method = 'GET') =>
      fetch(`${api.url}${path}`, { method, headers: { accept } });
    const page = await ask('/', 'text/html,application/xhtml+xml,*/*;q=0.8');
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
    const html = await page.text();
    expect(html).not.toMatch(/<script|<style|\son\w+=/);
    // Every page that it links to is open to all.
    const links = [...html.matchAll(/href="(\/[^"]*)"/g)].map(([, link]) => link!);
    expect(links).toHaveLength(3);
    for (const link of links) expect([link, (await ask(link, '*/*')).status]).toEqual([link, 200]);
    for (const accept of ['*/*', 'application/json', 'text/event-stream']) {
      expect((await ask('/', accept)).status).toBe(405);
    }
    expect((await ask('/', 'text/html', 'PUT')).status).toBe(405);
    expect((await ask('/agents/echo', 'text/html')).status).toBe(405);
  });

  it.each(['GET', 'PUT', 'PATCH', 'DELETE'])('answers 405 to %s where JSON-RPC is spoken', async (method) => {
    const response = await fetch(`${api.url}/agents/echo`, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST, OPTIONS']);
    expect(await response.json()).toMatchObject({ error: { code: 405 } });
  });

  it('announces that a connection may be idle for 75 seconds', async () => {
    expect(await raw('GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /healthz HTTP/1.0\r\n\r\n')).toMatch(
      /^HTTP\/1\.1 200[^]*\r\nkeep-alive: timeout=75\r\n/i,
    );
  });

  it('announces the same on the management port', async () => {
    const { headers } = await rawRequest(`${api.managementUrl}/healthz`, {
      headers: { connection: 'keep-alive' },
    });
    expect(headers['keep-alive']).toBe('timeout=75');
  });

  it('keeps idle connections for KEEP_ALIVE_SECONDS, on both ports', async () => {
    const patient = await startFakeApi({ KEEP_ALIVE_SECONDS: '610' });
    try {
      for (const url of [patient.url, patient.managementUrl]) {
        const { headers } = await rawRequest(`${url}/healthz`, { headers: { connection: 'keep-alive' } });
        expect(headers['keep-alive']).toBe('timeout=610');
      }
    } finally {
      await patient.close();
    }
  });

  it('answers OPTIONS with what there is, and HEAD as GET without its body', async () => {
    const options = await fetch(`${api.url}/agents/echo/`, { method: 'OPTIONS' });
    expect([options.status, options.headers.get('allow')]).toEqual([204, 'POST, OPTIONS']);
    const head = await fetch(`${api.url}/.well-known/agent-card.json`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    const post = await fetch(`${api.url}/healthz`, { method: 'POST' });
    expect([post.status, post.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS']);
  });
});

describe('the request’s id', () => {
  startOnce();

  it.each([
    ['abc-123', 'abc-123'],
    ['a'.repeat(200), expect.stringMatching(/^[\da-f-]{36}$/)],
    ['<script>', expect.stringMatching(/^[\da-f-]{36}$/)],
  ])('of a caller who sends %j', async (given, answered) => {
    const response = await api.rpc(request.get, { 'x-request-id': given });
    expect(response.headers.get('x-request-id')).toEqual(answered);
  });
});

describe('the log', () => {
  startForEach();

  const lines = () => api.log.filter(({ msg, path }) => msg === 'request' && path === '/agents/echo');

  it('has one line a request, with ids and without the token', async () => {
    await api.rpc(request.get, { 'x-request-id': 'line-1' }, '/agents/echo?access_token=hunter2');
    while (lines().length === 0) await new Promise(setImmediate);
    expect(lines()).toHaveLength(1);
    expect(lines()[0]).toMatchObject({
      requestId: 'line-1',
      method: 'POST',
      status: 200,
      tenantId: 'tenant-1',
      taskId: 'task-1',
      agent: 'echo',
      rpcMethod: 'GetTask',
      ms: expect.any(Number) as unknown,
    });
    expect(JSON.stringify(api.log)).not.toMatch(/Bearer|hunter2/);
  });

  it('names the error that was answered', async () => {
    await api.rpc('{');
    while (lines().length === 0) await new Promise(setImmediate);
    expect(lines()[0]).toMatchObject({ rpcError: -32700, status: 200 });
  });
});

describe('shutting down', () => {
  startForEach();

  it('lets calls in hand finish, and takes no new ones', async () => {
    await api.close();
    // So long that a slow machine does not end calls in hand.
    api = await startFakeApi({ API_GRACE_MS: '600000' });
    let finish = (): void => undefined;
    let hurried: boolean | undefined;
    const started = new Promise<void>((resolve) => {
      api.operations.sendMessage = async (_call, _request, signal) => {
        resolve();
        await new Promise<void>((done) => (finish = done));
        hurried = signal.aborted;
        return { $case: 'task', value: sampleTask() };
      };
    });
    const call = api.rpc(request.send);
    await started;
    const closed = api.close();
    const isTaken = (): Promise<boolean> =>
      fetch(`${api.url}/healthz`, { headers: { connection: 'close' } }).then(
        () => true,
        () => false,
      );
    while (await isTaken());
    finish();
    expect((await call).status).toBe(200);
    expect(hurried).toBe(false);
    await closed;
    api = await startFakeApi();
  });

  it('has calls that would block longer answer with what they have', async () => {
    const started = new Promise<void>((resolve) => {
      api.operations.sendMessage = async (_call, _request, signal) => {
        resolve();
        await new Promise<void>((done) => signal.addEventListener('abort', () => done()));
        return { $case: 'task', value: sampleTask() };
      };
    });
    const call = api.rpc(request.send);
    await started;
    await api.close();
    expect((await call).status).toBe(200);
    api = await startFakeApi();
  });
});
