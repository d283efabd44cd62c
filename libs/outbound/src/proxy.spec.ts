import { type Server as HttpServer, createServer } from 'node:http';
import { type AddressInfo, type Server, createServer as createTcpServer } from 'node:net';
import { createLogger } from '@baton/telemetry';
import { ConnectProxy } from '../../../test/support/connect-proxy.js';
import { failureReason } from './failure-reason.js';
import type { Resolve } from './names/name-resolver.js';
import { Outbound } from './outbound.js';

describe('calls through the proxy of the operator', () => {
  let proxy: ConnectProxy;
  let target: HttpServer;
  let port = 0;
  const hosts: (string | undefined)[] = [];
  /** Connections to the target, from whomever. */
  let connections = 0;
  const opened: Outbound[] = [];
  let logged = '';

  beforeEach(async () => {
    proxy = await ConnectProxy.start();
    target = createServer(({ headers }, response) => {
      hosts.push(headers.host);
      response.end('hello');
    });
    target.on('connection', () => (connections += 1));
    port = await listen(target);
  });
  afterEach(async () => {
    [hosts.length, connections, logged] = [0, 0, ''];
    await Promise.all(opened.splice(0).map((outbound) => outbound.onApplicationShutdown()));
    await proxy.stop();
    target.closeAllConnections();
    await new Promise((resolve) => target.close(resolve));
  });

  async function listen(server: HttpServer | Server): Promise<number> {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return (server.address() as AddressInfo).port;
  }
  const named =
    (...addresses: string[]): Resolve =>
    () =>
      Promise.resolve(addresses.map((address) => ({ address, family: 4 })));

  function outbound(
    resolve?: Resolve,
    settings: { outboundProxy?: string; outboundProxyResolves?: boolean } = {},
  ): Outbound {
    const log = createLogger({ logLevel: 'info' }, 'worker', { write: (line) => void (logged += line) });
    const rules = { outboundAllow: ['127.0.0.1', '::1'], outboundProxy: proxy.url, ...settings };
    const made = new Outbound(rules, undefined, resolve, log);
    opened.push(made);
    return made;
  }

  it('lead to the address that was checked, with the name of the host', async () => {
    proxy.credentials = 'me:p@ss w%rd';
    const calls = outbound(named('10.0.0.1', '127.0.0.1'));
    expect(await (await calls.fetch(`http://a.example:${port}/`)).text()).toBe('hello');
    expect(await (await calls.fetch(`http://a.example:${port}/`)).text()).toBe('hello');
    expect([...new Set(proxy.asked)]).toEqual([`127.0.0.1:${port}`]);
    expect(hosts).toEqual([`a.example:${port}`, `a.example:${port}`]);
    expect(connections).toBe(proxy.asked.length);
  });

  /** The first message of TLS that a server gets. The name of the server is readable in it (RFC 6066). */
  async function firstMessage(call: (port: number) => Promise<unknown>): Promise<string> {
    let hear: (text: string) => void;
    const heard = new Promise<string>((resolve) => (hear = resolve));
    const server = createTcpServer((socket) => {
      socket.once('data', (data) => {
        hear(data.toString('latin1'));
        socket.destroy();
      });
    });
    const called = call(await listen(server)).catch(() => undefined);
    const text = await heard;
    await called;
    await new Promise((resolve) => server.close(resolve));
    return text;
  }

  it('use TLS with the host, by its name', async () => {
    const calls = outbound(named('127.0.0.1'));
    const hello = await firstMessage((tlsPort) => calls.fetch(`https://secure.example:${tlsPort}/`));
    expect(hello).toContain('secure.example');
    expect(proxy.asked[0]).toMatch(/^127\.0\.0\.1:\d+$/);
  });

  it('use TLS with a proxy by its own name', async () => {
    const hello = await firstMessage((tlsPort) => {
      const settings = { outboundProxy: `https://localhost:${tlsPort}`, outboundProxyResolves: true };
      return outbound(undefined, settings).fetch('https://secure.example/');
    });
    expect(hello).toContain('localhost');
    expect(hello).not.toContain('secure.example');
  });

  it('lead there, too, if a URL has an address', async () => {
    proxy.names.set('[::1]', '127.0.0.1');
    for (const host of [`127.0.0.1:${port}`, `[::1]:${port}`]) {
      expect(await (await outbound().fetch(`http://${host}/`)).text()).toBe('hello');
    }
    expect(proxy.asked).toEqual([`127.0.0.1:${port}`, `[::1]:${port}`]);
    expect(connections).toBe(2);
  });

  it('are refused as without a proxy', async () => {
    const calls = outbound(named('10.0.0.1'));
    await expect(calls.fetch('http://internal.example/')).rejects.toThrow('is not at a public address');
    await expect(calls.fetch('http://169.254.169.254/')).rejects.toThrow('is not at a public address');
    const tenant = calls.forTenant('tenant', () => Promise.resolve({ allow: [], deny: ['127.0.0.1'] }));
    await expect(tenant.fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow('egress_deny');
    expect([proxy.asked, hosts]).toEqual([[], []]);
  });

  it.each([403, 407, 502])('never go around it: it answers %s', async (status) => {
    proxy.credentials = 'me:secret';
    const calls = outbound(named('127.0.0.1'));
    proxy.refusals.push(status);
    const error: unknown = await calls.fetch(`http://a.example:${port}/`).catch((reason: unknown) => reason);
    expect(failureReason(error)).toBe('the proxy of this server opened no connection to it');
    expect(logged).toContain(`answered with status ${status}`);
    expect(logged).not.toMatch(/secret|bWU6c2VjcmV0/);
    expect(hosts).toEqual([]);
  });

  it('never go around it: it is gone', async () => {
    const calls = outbound(named('127.0.0.1'));
    await proxy.stop();
    const error: unknown = await calls.fetch(`http://a.example:${port}/`).catch((reason: unknown) => reason);
    expect(failureReason(error)).toBe('the proxy of this server opened no connection to it');
    expect(logged).toContain('ECONNREFUSED');
    expect(hosts).toEqual([]);
  });

  it('try the next address of a name', async () => {
    const calls = outbound(named('127.0.0.1', '127.0.0.1'));
    proxy.refusals.push(502);
    expect(await (await calls.fetch(`http://a.example:${port}/`)).text()).toBe('hello');
    expect(proxy.asked).toHaveLength(2);
  });

  describe('which resolves names', () => {
    const never: Resolve = () => Promise.reject(new Error('nobody may ask'));
    const resolving = () => outbound(never, { outboundProxyResolves: true });

    it('give it the name', async () => {
      proxy.names.set('only-there.example', '127.0.0.1');
      const response = await resolving().fetch(`http://only-there.example:${port}/`);
      expect(await response.text()).toBe('hello');
      expect(proxy.asked).toEqual([`only-there.example:${port}`]);
    });

    it.each([
      ['http://10.0.0.1/', 'is not at a public address'],
      ['http://2130706434/', 'is not at a public address'],
      ['http://localhost/', 'is not at a public address'],
      ['http://a.LOCALHOST./', 'is not at a public address'],
      ['http://denied.example/', 'egress_deny'],
      ['http://elsewhere.test/', 'egress_allow'],
    ])('do not lead to %s', async (url, reason) => {
      const lists = { allow: ['*.example', '192.0.2.0/24'], deny: ['denied.example'] };
      const tenant = resolving().forTenant('tenant', () => Promise.resolve(lists));
      await expect(tenant.fetch(url)).rejects.toThrow(reason);
      expect(proxy.asked).toEqual([]);
    });
  });
});
