import { loadEnvironment } from '@baton/config';
import { createLogger, Metrics } from '@baton/telemetry';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { publicConnections } from './connection-limit.js';

const MINE = '127.0.0.1';
const OTHER = '127.0.0.2';
const callers: Socket[] = [];

/** A caller at an address who sends some bytes and stays connected. Resolves with its answer, or `closed`. */
async function call(
  port: number,
  from: string,
  bytes = 'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n',
): Promise<string> {
  const caller = await silent(port, from);
  caller.write(bytes);
  const [said] = (await Promise.race([once(caller, 'data'), once(caller, 'close')])) as [Buffer | boolean];
  return Buffer.isBuffer(said) ? said.toString() : 'closed';
}

/** A caller at an address who says nothing. */
async function silent(port: number, localAddress: string): Promise<Socket> {
  const caller = connect({ port, host: MINE, localAddress });
  callers.push(caller.on('error', () => undefined));
  await once(caller, 'connect');
  return caller;
}

afterEach(() => {
  for (const caller of callers.splice(0)) caller.destroy();
});

describe('connections of callers', () => {
  let api: FakeApi;
  let port: number;
  let grpcPort: number;
  beforeEach(async () => {
    api = await startFakeApi({
      GRPC_PORT: '0',
      MAX_CONNECTIONS: '6',
      MAX_CONNECTIONS_PER_ADDRESS: '4',
      TRUSTED_PROXIES: '127.0.0.9',
    });
    [port, grpcPort] = [api.url, `http://${api.grpcAddress}`].map((url) => Number(new URL(url).port)) as [
      number,
      number,
    ];
  });
  afterEach(() => api.close());

  const open = async (): Promise<string | undefined> =>
    (await (await fetch(`${api.managementUrl}/metrics`)).text()).match(
      /^baton_connections\{port="public"\} (.*)$/m,
    )?.[1];
  const refusals = async (limit: string): Promise<number> => {
    const text = await (await fetch(`${api.managementUrl}/metrics`)).text();
    return Number(
      text.match(
        new RegExp(`^baton_connections_refused_total{port="public",limit="${limit}"} (.*)$`, 'm'),
      )?.[1],
    );
  };

  it('of one address have a limit, over HTTP and gRPC together; other addresses have room', async () => {
    for (const each of [port, port, grpcPort, grpcPort]) await silent(each, MINE);
    while ((await open()) !== '4') await new Promise(setImmediate);
    expect(await call(grpcPort, MINE)).toBe('closed');
    expect(await call(port, MINE, 'GET /v1/agents HTTP/1.1\r\nhost: x\r\n\r\n')).toMatch(
      /^HTTP\/1.1 503 [^]*too many open connections/,
    );
    expect(await call(port, OTHER)).toMatch(/^HTTP\/1.1 200/);
    expect(await refusals('address')).toBe(2);
    const lines = api.log.filter(({ level, port: of }) => level === 'warn' && of === 'public');
    // Once, however many are refused within ten seconds.
    expect(lines).toMatchObject([
      {
        msg: 'connections of an address refused, 4 are open: if it is a proxy, add it to TRUSTED_PROXIES',
        address: MINE,
      },
    ]);
  });

  it('have a limit in total, and beyond it probes of health are answered', async () => {
    for (const from of [MINE, MINE, MINE, OTHER, OTHER, OTHER]) await silent(port, from);
    while ((await open()) !== '6') await new Promise(setImmediate);
    const probe = await call(port, '127.0.0.3');
    expect(probe).toMatch(/^HTTP\/1.1 200/);
    expect(probe).toMatch(/^connection: close/im);
    expect(await call(port, '127.0.0.3', 'GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n')).toMatch(
      /^HTTP\/1.1 200/,
    );
    expect(await refusals('total')).toBe(2);
    // Silent ones do not hold up a probe, however many there are.
    for (let i = 0; i < 40; i++) await silent(port, MINE);
    expect(await call(port, '127.0.0.3')).toMatch(/^HTTP\/1.1 200/);
  });

  it('of a trusted proxy have no limit of their address', async () => {
    for (let i = 0; i < 5; i++) expect(await call(port, '127.0.0.9')).toMatch(/^HTTP\/1.1 200/);
    expect(await refusals('address')).toBe(0);
  });
});

describe('silent connections', () => {
  let server: Server;
  let port: number;
  const lines: string[] = [];
  const logger = createLogger({ logLevel: 'info' }, 'api', {
    write: (line: string) => void lines.push(line),
  });

  /** Serves with a few connections, of which one address may have all. */
  const serve = async (): Promise<void> => {
    const environment = loadEnvironment({
      DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
      MAX_CONNECTIONS: '10',
      MAX_CONNECTIONS_PER_ADDRESS: '10',
    });
    server = createServer((request, response) => {
      if (request.url === '/slow') response.write('begins');
      else response.end('served');
    });
    publicConnections(environment, logger, new Metrics()).limit(server);
    server.listen(0, MINE);
    await once(server, 'listening');
    port = (server.address() as AddressInfo).port;
  };
  beforeEach(async () => {
    jest.useFakeTimers({
      now: 0,
      doNotFake: [
        'nextTick',
        'setImmediate',
        'clearImmediate',
        'queueMicrotask',
        'setTimeout',
        'clearTimeout',
      ],
    });
    await serve();
  });
  afterEach(async () => {
    jest.useRealTimers();
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  it('are closed after ten seconds when room is short; those with a request under way are not', async () => {
    const slow = await silent(port, MINE);
    slow.write('GET /slow HTTP/1.1\r\nhost: x\r\n\r\n');
    await once(slow, 'data');
    const others = await Promise.all(Array.from({ length: 8 }, () => silent(port, MINE)));
    expect(await call(port, MINE)).toContain('served');
    const closed = Promise.all(others.map((each) => once(each, 'close')));
    jest.advanceTimersByTime(9_000);
    expect(others.some(({ destroyed }) => destroyed)).toBe(false);
    jest.advanceTimersByTime(2_000);
    await closed;
    expect(slow.destroyed).toBe(false);
  });

  it('stay open while there is room', async () => {
    const first = await silent(port, MINE);
    expect(await call(port, MINE)).toContain('served');
    jest.advanceTimersByTime(60_000);
    // It is still served.
    first.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
    expect(String((await once(first, 'data'))[0])).toContain('served');
  });
});

describe('the limit of open files', () => {
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger({ logLevel: 'info' }, 'api', {
    write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>),
  });
  const limit = (openFiles: number, source: Record<string, string> = {}) => {
    lines.length = 0;
    const environment = loadEnvironment({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none', ...source });
    return publicConnections(environment, logger, new Metrics(), openFiles).bounds;
  };

  it('lowers the number of connections, and leaves files for Postgres, Redis and probes', () => {
    expect(limit(1_024)).toMatchObject({ max: 1_024 - 208, maxOfAddress: 204 });
    expect(lines).toMatchObject([
      {
        msg: expect.stringMatching(
          /at most 816 connections, fewer than MAX_CONNECTIONS: raise the limit of open files/,
        ) as string,
        openFiles: 1_024,
      },
    ]);
    expect(limit(1_024, { DATABASE_POOL_SIZE: '116' }).max).toBe(1_024 - 308);
    expect(limit(10).max).toBe(1);
  });

  it('is not mentioned where files are enough', () => {
    expect(limit(65_536)).toMatchObject({ max: 10_000, maxOfAddress: 2_500 });
    expect(limit(Infinity)).toMatchObject({ max: 10_000 });
    expect(lines).toEqual([]);
  });
});
