import { RawSocket } from '../../../../test/support/raw-socket.js';
import { errorCodes } from 'fastify';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { rawRequest } from '../../../../test/support/api/raw-request.js';

let api: FakeApi;

beforeAll(async () => {
  api = await startFakeApi();
});
afterAll(() => api.close());

/** A request that the framework refuses. `%agent` in a path stands for the name of an agent or a task. */
interface Refused {
  name?: string;
  status: number;
  says: RegExp;
}

const JSON_HEADERS = { 'content-type': 'application/json', authorization: 'Bearer admin' };

/** Every error of Fastify that a caller can cause. */
const REFUSED: Readonly<Record<string, Refused>> = {
  FST_ERR_BAD_URL: { name: '%zz', status: 400, says: /percent-encoding/ },
  FST_ERR_MAX_PARAM_LENGTH: { name: 'a'.repeat(300), status: 414, says: /is too long/ },
};

/** Errors of Fastify that answer callers with less than 500, and which nothing here can cause. */
const CAN_NOT_COME: Readonly<Record<string, string>> = {
  FST_ERR_NOT_FOUND: 'Nest answers unknown paths',
  FST_ERR_VALIDATION: 'no route has a schema',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'BodyReader reads bodies',
  FST_ERR_CTP_BODY_TOO_LARGE: 'BodyReader reads bodies',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'BodyReader reads bodies',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'BodyReader reads bodies',
  FST_ERR_CTP_INVALID_JSON_BODY: 'BodyReader reads bodies',
  FST_ERR_CTP_INSTANCE_ALREADY_STARTED: 'a mistake in our code',
  FST_ERR_INVALID_URL: 'for inject() alone',
  FST_ERR_ROUTE_MISSING_CONTENT_TYPE: 'no route requires it of Fastify',
  FST_ERR_ROUTE_MISSING_CONTENT: 'no route requires it of Fastify',
};

it('every error of Fastify that is about a request is known here', () => {
  const codes = Object.entries(errorCodes).map(([code, FastifyError]) => ({
    code,
    status: new (FastifyError as new () => { statusCode?: number })().statusCode ?? 500,
  }));
  const ofRequests = codes.filter(({ status }) => status < 500).map(({ code }) => code);
  expect(ofRequests.sort()).toEqual([...Object.keys(REFUSED), ...Object.keys(CAN_NOT_COME)].sort());
});

describe.each(Object.entries(REFUSED))('%s', (_, { name = 'echo', status, says }) => {
  it.each([`/agents/${name}`, `/a2a/${name}`, `/v1/a2a/agents/${name}`])(
    'is a JSON-RPC error at %s',
    async (path) => {
      const answer = await rawRequest(api.url, {
        method: 'POST',
        path,
        headers: JSON_HEADERS,
        body: {},
      });
      expect([answer.status, JSON.parse(answer.text)]).toMatchObject([
        status,
        {
          jsonrpc: '2.0',
          id: null,
          error: { code: expect.any(Number), message: expect.stringMatching(says) },
        },
      ]);
    },
  );

  it.each([`/v1/schedules/${name}`, `/v1/secrets/${name}`])('is an error of HTTP at %s', async (path) => {
    const answer = await rawRequest(api.url, { method: 'DELETE', path, headers: JSON_HEADERS });
    if (answer.status === 405) return;
    expect([answer.status, JSON.parse(answer.text)]).toMatchObject([
      status,
      {
        error: {
          code: status,
          status: expect.stringMatching(/^[A-Z_]+$/),
          message: expect.stringMatching(says),
        },
      },
    ]);
  });

  it('leaves no error in the log', () => {
    expect(api.log.filter(({ level }) => level === 'error')).toEqual([]);
  });
});

describe('a media type that cannot be read', () => {
  const headers = { ...JSON_HEADERS, 'content-type': ';' };

  it.each(['/agents/echo', '/a2a/echo', '/v1/a2a/agents/echo', '/v1/agents'])(
    'is refused with 415 at %s',
    async (path) => {
      const answer = await rawRequest(api.url, { method: 'POST', path, headers, body: {} });
      expect([answer.status, JSON.parse(answer.text)]).toMatchObject([
        415,
        {
          error: {
            code: expect.any(Number),
            message: expect.stringMatching(/Content-Type .* is not supported/),
          },
        },
      ]);
    },
  );

  it('is not read before the token', async () => {
    const { authorization: _, ...anonymous } = headers;
    const answer = await rawRequest(api.url, {
      method: 'POST',
      path: '/agents/echo',
      headers: anonymous,
      body: {},
    });
    expect(answer.status).toBe(401);
  });
});

describe('what Node itself refuses', () => {
  it('is answered with a body: an unknown Expect, and a request without a host', async () => {
    const expecting = await rawRequest(api.url, { path: '/healthz', headers: { expect: 'miracles' } });
    expect([expecting.status, JSON.parse(expecting.text)]).toMatchObject([
      417,
      { error: { code: 417, status: 'EXPECTATION_FAILED' } },
    ]);
    const hostless = await rawRequest(api.url, { path: '/healthz', setHost: false });
    expect([hostless.status, JSON.parse(hostless.text)]).toMatchObject([
      400,
      { error: { code: 400, message: expect.stringContaining('Host header') } },
    ]);
    expect(hostless.headers['x-content-type-options']).toBe('nosniff');
  });

  it('and a request with two hosts, of which a proxy may follow the other one', async () => {
    const peer = await RawSocket.open(api.url);
    peer.send('GET /healthz HTTP/1.1\r\nhost: one.example\r\nHOST: two.example\r\n\r\n');
    await peer.closed;
    expect(peer.received).toMatch(/^HTTP\/1\.1 400 [^]*2 Host headers/);
  });
});
