import type { Environment } from '@baton/config';
import type { PlatformReadiness } from '@baton/tasks';
import type { Logger, Metrics } from '@baton/telemetry';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { json, text } from 'node:stream/consumers';
import { HealthServer } from './health-server.js';

describe('the health port of a worker', () => {
  let server: HealthServer;
  let port: number;
  let isReady: boolean;
  beforeEach(async () => {
    isReady = true;
    const readiness = { report: async () => ({ ready: isReady }) } as PlatformReadiness;
    const metrics = {
      render: async () => ({ contentType: 'text/plain', body: 'baton_up 1' }),
    } as unknown as Metrics;
    const environment = { workerPort: 0, host: '127.0.0.1', managementHosts: ['probes.example'] };
    const logger = { info: (_: string, said: { workerPort: number }) => (port = said.workerPort) };
    server = new HealthServer(
      readiness,
      metrics,
      environment as unknown as Environment,
      logger as unknown as Logger,
    );
    await server.onApplicationBootstrap();
  });
  afterEach(() => server.onApplicationShutdown());

  async function get(path: string, host = `127.0.0.1:${port}`): Promise<IncomingMessage> {
    const sent = request({ port, host: '127.0.0.1', path, headers: { host } }).end();
    const [answer] = (await once(sent, 'response')) as [IncomingMessage];
    return answer;
  }

  it('serves liveness, readiness and metrics', async () => {
    expect(server.url).toBe(`http://127.0.0.1:${port}`);
    expect((await get('/healthz')).statusCode).toBe(200);
    expect((await get('/readyz')).statusCode).toBe(200);
    isReady = false;
    const answer = await get('/readyz');
    expect([answer.statusCode, await json(answer)]).toEqual([503, { ready: false }]);
    expect(await text(await get('/metrics?all'))).toBe('baton_up 1');
    expect((await get('/elsewhere')).statusCode).toBe(404);
  });

  it('answers for addresses and for the names of operators, and for no name that a web page may rebind', async () => {
    for (const host of ['localhost', '[::1]:9', 'probes.example', 'probes.example:9'])
      expect([host, (await get('/metrics', host)).statusCode]).toEqual([host, 200]);
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      const refused = await get(path, 'rebound.example');
      expect([path, refused.statusCode]).toEqual([path, 421]);
      expect(await text(refused)).toContain('MANAGEMENT_HOSTS');
    }
  });
});
