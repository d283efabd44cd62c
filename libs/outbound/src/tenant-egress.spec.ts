import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createLogger } from '@baton/telemetry';
import { egressRefusal } from './tenant-egress.js';
import type { Resolve } from './names/name-resolver.js';
import { Outbound } from './outbound.js';

const DENIED = 'egress_deny';
const NOT_ALLOWED = 'egress_allow';
const PRIVATE = 'is not at a public address';

describe('the lists of a tenant, about a URL', () => {
  const refusal = (allow: string[], deny: string[], url: string) =>
    /egress_\w+/.exec(egressRefusal({ allow, deny }, url) ?? '')?.[0];

  it.each([
    ['api.example.com', 'https://api.example.com/v1'],
    ['api.example.com', 'https://API.EXAMPLE.COM./v1'],
    ['api.example.com:443', 'https://api.example.com'],
    ['api.example.com:80', 'http://api.example.com'],
    ['*.example.com', 'https://a.b.example.com:8443'],
    ['bücher.example', 'https://BÜCHER.example'],
    ['xn--bcher-kva.example', 'https://bücher.example'],
    ['127.0.0.1', 'http://2130706433/'],
    ['127.0.0.0/8', 'http://0x7f.1:8080/'],
    ['127.0.0.1:8080', 'http://[::ffff:127.0.0.1]:8080/'],
    ['10.0.0.0/8', 'http://[64:ff9b::a00:1]/'],
    ['2001:db8::/32', 'https://[2001:DB8:0::7]/'],
  ])('%s matches %s', (pattern, url) => {
    expect([refusal([], [pattern], url), refusal([pattern], [], url)]).toEqual([DENIED, undefined]);
    expect(refusal([pattern], [pattern], url)).toBe(DENIED);
  });

  it.each([
    ['example.com', 'https://api.example.com'],
    ['*.example.com', 'https://example.com'],
    ['*.example.com', 'https://notexample.com'],
    ['*.example.com', 'https://example.com.evil.test'],
    ['api.example.com:443', 'http://api.example.com'],
    ['api.example.com:8443', 'https://api.example.com'],
    ['127.0.0.1:8080', 'http://127.0.0.1'],
    ['10.0.0.0/8', 'http://11.0.0.1'],
    ['::/0', 'http://10.0.0.1'],
    ['0.0.0.0/0', 'http://[2001:db8::1]'],
  ])('%s does not match %s', (pattern, url) => {
    expect(refusal([], [pattern], url)).toBeUndefined();
    // A name may still have an address that is allowed.
    const mayHave = pattern.includes('/') && !/\d\.|\[/.test(url);
    expect(refusal([pattern], [], url)).toBe(mayHave ? undefined : NOT_ALLOWED);
  });

  it('leave names to their addresses where networks are allowed, and all where nothing is listed', () => {
    expect(refusal(['10.0.0.0/8'], [], 'https://api.example.com')).toBeUndefined();
    expect(refusal([], [], 'https://api.example.com')).toBeUndefined();
  });

  it('let nothing pass if they are not understood', () => {
    expect(() => egressRefusal({ allow: [], deny: ['?'] }, 'https://a.example')).toThrow('no pattern');
  });
});

describe('calls of a tenant with lists', () => {
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    if (request.url === '/away') response.writeHead(302, { location: 'http://other.example/' }).end();
    else response.end('hello');
  });
  const asked: string[] = [];
  const opened: Outbound[] = [];
  let port = 0;
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    ({ port } = server.address() as AddressInfo);
  });
  afterEach(async () => {
    asked.length = 0;
    await Promise.all(opened.splice(0).map((outbound) => outbound.onApplicationShutdown()));
  });
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  const addresses: Record<string, string[]> = {
    'internal.example': ['10.1.2.3'],
    'mixed.example': ['127.0.0.2', '127.0.0.1'],
  };
  const resolve: Resolve = (name) =>
    Promise.resolve((addresses[name] ?? ['127.0.0.1']).map((address) => ({ address, family: 4 })));
  let logged = '';
  const log = createLogger({ logLevel: 'info' }, 'worker', { write: (line) => void (logged += line) });

  function guard(outboundDeny: string[] = []): Outbound {
    const settings = { outboundAllow: ['127.0.0.0/8'], outboundDeny };
    const outbound = new Outbound(settings, undefined, resolve, log);
    opened.push(outbound);
    return outbound;
  }
  const url = (host: string, path = '/'): string => `http://${host}:${port}${path}`;
  const reach = async (outbound: Outbound, lists: { allow?: string[]; deny?: string[] }, host: string) => {
    const calls = outbound.forTenant('tenant', () => Promise.resolve({ allow: [], deny: [], ...lists }));
    return calls.fetch(url(host)).then(
      (response) => response.text(),
      (error: unknown) => /egress_\w+|is not at a public address/.exec(String(error))?.[0] ?? String(error),
    );
  };

  it('go where their lists say, by name and by address', async () => {
    const outbound = guard();
    expect(await reach(outbound, { allow: ['*.example'] }, 'a.example')).toBe('hello');
    expect(await reach(outbound, { allow: ['127.0.0.0/8'] }, 'a.example')).toBe('hello');
    expect(await reach(outbound, { allow: ['192.0.2.0/24'] }, 'a.example')).toBe(NOT_ALLOWED);
    expect(await reach(outbound, { allow: ['b.example'] }, 'a.example')).toBe(NOT_ALLOWED);
    expect(await reach(outbound, { deny: ['127.0.0.0/8'] }, 'a.example')).toBe(DENIED);
    expect(await reach(outbound, { allow: ['a.example'], deny: ['127.0.0.1'] }, 'a.example')).toBe(DENIED);
    expect(await reach(outbound, { deny: ['127.0.0.1'] }, '2130706433')).toBe(DENIED);
    expect(await reach(outbound, { deny: ['127.0.0.2'] }, 'mixed.example')).toBe('hello');
  });

  it('never open what the operator has not, and do not learn where a name leads', async () => {
    const outbound = guard();
    expect(await reach(outbound, { allow: ['internal.example'] }, 'internal.example')).toBe(PRIVATE);
    expect(await reach(outbound, { allow: ['10.0.0.0/8'] }, 'internal.example')).toBe(PRIVATE);
    expect(await reach(outbound, { deny: ['10.0.0.0/8'] }, 'internal.example')).toBe(PRIVATE);
    expect(await reach(outbound, { deny: ['192.0.2.0/24'] }, '10.1.2.3')).toBe(PRIVATE);
  });

  it('do not share a connection with a tenant that may have it', async () => {
    const outbound = guard();
    expect(await reach(outbound, {}, 'a.example')).toBe('hello');
    expect(await reach(outbound, { deny: ['127.0.0.1'] }, 'a.example')).toBe(DENIED);
    expect(await reach(outbound, {}, 'a.example')).toBe('hello');
    expect(asked).toHaveLength(2);
  });

  it('follow a change of the lists with the next request', async () => {
    const lists = { allow: [] as string[], deny: [] as string[] };
    const { fetch } = guard().forTenant('tenant', () => Promise.resolve(lists));
    expect(await (await fetch(url('a.example'))).text()).toBe('hello');
    lists.deny = ['a.example'];
    await expect(fetch(url('a.example'))).rejects.toThrow(DENIED);
  });

  it('do not follow a redirect to elsewhere', async () => {
    const { fetch } = guard().forTenant('tenant', () => Promise.resolve({ allow: ['a.example'], deny: [] }));
    await expect(fetch(url('a.example', '/away'))).rejects.toThrow('redirects to http://other.example');
  });

  it('are refused by the operator with the words for a private address, which the log explains', async () => {
    const outbound = guard(['secret.example', '*.corp.example', '127.0.0.2']);
    expect(await reach(outbound, {}, 'secret.example')).toBe(PRIVATE);
    expect(await reach(outbound, {}, 'a.corp.example')).toBe(PRIVATE);
    expect(await reach(outbound, {}, '127.0.0.2')).toBe(PRIVATE);
    expect(await reach(outbound, {}, 'mixed.example')).toBe('hello');
    expect(logged).toContain('"host":"secret.example","reason":"OUTBOUND_DENY names it"');
    expect(logged).toContain('"host":"127.0.0.2","reason":"OUTBOUND_DENY has its address"');
  });
});
