import { DatabaseUnavailableError } from '@baton/database';
import { MessagingUnavailableError } from '@baton/messaging';
import { connect } from 'node:net';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { legacyRequest, request } from '../../../../test/support/api/samples.js';

let api: FakeApi;

beforeEach(async () => {
  api = await startFakeApi();
});
afterEach(() => api.close());

const AWAY = new DatabaseUnavailableError('Postgres is not available: connect ECONNREFUSED 10.0.0.7:5432');
const takeAway = (error: Error): void => {
  const fail = async () => Promise.reject(error);
  api.operations.getTask = fail;
  api.listing.list = fail;
  api.database.ping = fail;
  api.messaging.ping = fail;
};

describe.each([
  ['Postgres', AWAY, 'The database'],
  ['The queue', new MessagingUnavailableError('Redis at 10.0.0.7 does not answer'), 'The queue'],
])('while %s is away', (service, error, what) => {
  beforeEach(() => takeAway(error));

  it('JSON-RPC answers with a temporary error and the time to retry, in the form of each version', async () => {
    const info = { reason: 'UNAVAILABLE', metadata: { retryAfterSeconds: '2' } };
    for (const [version, body, data] of [
      ['1.0', request.get, [info, { retryDelay: '2s' }]],
      ['0.3', legacyRequest.get, { ...info, retryDelay: '2s' }],
    ] as const) {
      const response = await api.rpc(body, { 'a2a-version': version });
      expect([response.status, response.headers.get('retry-after')]).toEqual([200, '2']);
      const text = await response.text();
      expect(JSON.parse(text)).toMatchObject({
        id: request.get.id,
        error: { code: -32603, message: expect.stringContaining('is not available at the moment'), data },
      });
      expect(text).not.toContain('10.0.0.7');
    }
  });

  it('HTTP endpoints answer 503 with Retry-After', async () => {
    const headers = { authorization: 'Bearer reader' };
    const response = await fetch(`${api.url}/v1/tasks`, { headers });
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '2']);
    expect(await response.json()).toEqual({
      error: {
        code: 503,
        status: 'UNAVAILABLE',
        message: `${what} is not available at the moment: send the request again`,
      },
    });
    const ready = await fetch(`${api.url}/readyz`);
    expect([ready.status, ready.headers.get('retry-after')]).toEqual([503, '2']);
  });

  it('the log has one line for it, for any number of requests', async () => {
    await Promise.all(Array.from({ length: 20 }, async () => (await api.rpc(request.get)).text()));
    const lines = api.log.filter(({ level, msg }) => level === 'warn' && String(msg).startsWith(service));
    expect(lines).toMatchObject([{ msg: `${service} is away: requests that need it fail` }]);
    expect(api.log.filter(({ level }) => level === 'error')).toEqual([]);
  });
});

describe('a path that is not valid percent-encoding', () => {
  /** Status, and the body in JSON, of a request that no client of ours would send. */
  const raw = async (head: string): Promise<[string, unknown]> => {
    const { hostname, port } = new URL(api.url);
    const socket = connect(Number(port), hostname, () => {
      socket.write(`${head}\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
    });
    let answer = '';
    for await (const chunk of socket.setEncoding('utf8')) answer += chunk as string;
    return [answer.slice(9, 12), JSON.parse(answer.slice(answer.indexOf('{'), answer.lastIndexOf('}') + 1))];
  };

  it('is answered in JSON-RPC where that is spoken, and in the form of HTTP elsewhere', async () => {
    expect(await raw('POST /agents/%zz HTTP/1.1')).toMatchObject([
      '400',
      {
        jsonrpc: '2.0',
        id: null,
        error: { code: -32600, message: expect.stringContaining('percent-encoding') },
      },
    ]);
    for (const head of ['GET /agents/%zz HTTP/1.1', 'POST /v1/tasks/%c0%ae HTTP/1.1', 'GET /% HTTP/1.1']) {
      expect(await raw(head)).toMatchObject([
        '400',
        { error: { code: 400, status: 'BAD_REQUEST', message: expect.stringContaining('percent-encoding') } },
      ]);
    }
  });
});
