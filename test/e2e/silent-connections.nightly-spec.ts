import { once } from 'node:events';
import { request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { freePort } from '../support/ports.js';
import type { BatonProcess } from '../support/baton-process.js';
import { sendParams } from '../support/raw-caller.js';
import { Stack, type TestTenant } from '../support/stack.js';

/** Fewer than callers open here. */
const OPEN_FILES = 300;

describe('silent connections of HTTP and gRPC', () => {
  let stack: Stack;
  let api: BatonProcess;
  let grpcPort: number;
  let tenant: TestTenant;
  const sockets: Socket[] = [];
  beforeAll(async () => {
    stack = await Stack.start({ driver: 'postgres', apis: 0 });
    tenant = await stack.createTenant('agents:call', 'tasks:read');
    grpcPort = await freePort();
    api = await stack.addApi({ GRPC_PORT: String(grpcPort) }, OPEN_FILES);
  });
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });
  afterAll(() => stack.stop());

  /** Opens connections of an address to both ports, and says nothing on them. */
  const fill = async (localAddress: string, count: number): Promise<void> => {
    const ports = [Number(new URL(api.url).port), grpcPort];
    for (let i = 0; i < count; i++) {
      const socket = connect({ port: ports[i % 2]!, host: '127.0.0.1', localAddress });
      sockets.push(socket.on('error', () => undefined));
      await once(socket, 'connect');
    }
  };

  /** The status of a request of another caller, or why it has none. */
  const ask = async (path: string, body?: object): Promise<number | string> => {
    const headers = {
      authorization: `Bearer ${tenant.token}`,
      'content-type': 'application/json',
      'a2a-version': '1.0',
    };
    const asked = request(api.url + path, { method: body ? 'POST' : 'GET', headers, agent: false });
    asked.end(body && JSON.stringify(body));
    try {
      const [response] = (await once(asked, 'response')) as [{ statusCode: number; resume(): void }];
      response.resume();
      return response.statusCode;
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? 'refused';
    }
  };
  const send = () => {
    const params = { ...sendParams('hello'), configuration: { returnImmediately: true } };
    return ask('/agents/echo', { jsonrpc: '2.0', id: 1, method: 'SendMessage', params });
  };
  const refused = async (limit: string): Promise<number> => {
    const metrics = await (await fetch(`${api.managementUrl}/metrics`)).text();
    const count = metrics.match(`baton_connections_refused_total{port="public",limit="${limit}"} (.*)`);
    return Number(count?.[1]);
  };

  it('of one address leave room for other callers, and for Postgres', async () => {
    await fill('127.0.0.2', OPEN_FILES);
    expect(await send()).toBe(200);
    expect(await refused('address')).toBeGreaterThan(0);
    expect(api.log()).toContain('connections of an address refused');
  });

  it('of many addresses make room within some ten seconds; health is answered meanwhile', async () => {
    await Promise.all(Array.from({ length: 6 }, (_, i) => fill(`127.0.0.${i + 10}`, 60)));
    expect(await ask('/healthz')).toBe(200);
    expect(await ask('/readyz')).toBe(200);
    expect((await fetch(`${api.managementUrl}/readyz`)).status).toBe(200);
    while ((await send()) !== 200) await setImmediate();
    expect(await refused('total')).toBeGreaterThan(0);
    expect(api.log()).toContain('connections refused, all');
  });
});
