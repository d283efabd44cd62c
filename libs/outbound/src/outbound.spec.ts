import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { createLogger, Metrics } from '@baton/telemetry';
import { failureReason } from './failure-reason.js';
import type { Resolve } from './names/name-resolver.js';
import { Outbound } from './outbound.js';
import { outboundUrl } from './outbound-url.js';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** A server on every loopback address, which remembers what it was asked. */
class LoopbackServer {
  readonly asked: string[] = [];
  readonly headers: IncomingMessage['headers'][] = [];
  readonly routes: Record<string, Answer> = {};
  port = 0;
  private readonly server: Server;

  constructor() {
    this.server = createServer((request, response) => {
      this.asked.push(`${request.method ?? ''} ${request.url ?? ''}`);
      this.headers.push(request.headers);
      const answer = this.routes[request.url ?? ''];
      if (answer) answer(request, response);
      else response.end('hello');
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, '0.0.0.0', resolve));
    this.port = (this.server.address() as AddressInfo).port;
  }

  stop(): Promise<void> {
    this.server.closeAllConnections();
    return new Promise((resolve) => this.server.close(() => resolve()));
  }
}

const redirect =
  (status: number, location: string): Answer =>
  (_, response) => {
    response.writeHead(status, { location }).end();
  };

describe('outbound calls', () => {
  let server: LoopbackServer;
  const opened: Outbound[] = [];

  beforeEach(async () => {
    server = new LoopbackServer();
    await server.start();
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((outbound) => outbound.onApplicationShutdown()));
    await server.stop();
  });

  function outbound(allow: string[], resolve?: Resolve): Outbound {
    const made = new Outbound({ outboundAllow: allow }, undefined, resolve);
    opened.push(made);
    return made;
  }
  const url = (host = '127.0.0.1', path = '/'): string => `http://${host}:${server.port}${path}`;
  const local = () => outbound(['127.0.0.1']);
  const named =
    (...answers: string[][]): Resolve =>
    () =>
      Promise.resolve((answers.shift() ?? []).map((address) => ({ address, family: 4 })));

  it.each([
    '127.0.0.1',
    '2130706433',
    '0x7f000001',
    '0177.0.0.1',
    '127.1',
    '127.0.0.1.',
    '0',
    '[::]',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[0:0:0:0:0:ffff:7f00:1]',
    '[64:ff9b::7f00:1]',
    '[fe80::1]',
    '169.254.169.254',
    'localhost',
    'LOCALHOST',
    'localhost.',
    '①②⑦.0.0.1',
  ])('does not lead to %s', async (host) => {
    const refused = expect(outbound([], named(['127.0.0.1'])).fetch(url(host))).rejects;
    await refused.toMatchObject({
      name: 'OutboundRefused',
      message: expect.stringMatching(/is not at a public address.+OUTBOUND_ALLOW/) as string,
    });
    expect(server.asked).toEqual([]);
  });

  it.each([
    ['127.0.0.1', '127.0.0.1'],
    ['127.0.0.0/8', '127.0.0.1'],
    ['127.0.0.0/8', '[::ffff:127.0.0.1]'],
    ['localhost', 'localhost'],
    ['LocalHost.', 'localhost.'],
  ])('leads, with %s allowed, to %s', async (allowed, host) => {
    const answer = await outbound([allowed], named(['127.0.0.1'])).fetch(url(host));
    expect(await answer.text()).toBe('hello');
  });

  it.each([
    [16, 'hello'],
    [17, '"127.0.0.1:PORT" sent more than 16 interim answers (1xx)'],
    [10_000, '"127.0.0.1:PORT" sent more than 16 interim answers (1xx)'],
  ])('takes an answer after %i interim ones, or says why not', async (count, outcome) => {
    server.routes['/'] = (_, response) => {
      response.socket?.write('HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n'.repeat(count));
      response.end('hello');
    };
    const text = await local()
      .fetch(url())
      .then(
        (answer) => answer.text(),
        (error: unknown) => failureReason(error),
      );
    expect(text).toBe(outcome.replace('PORT', String(server.port)));
  });

  describe('an answer', () => {
    it.each(['gzip', 'br', 'GZIP', 'gzip, identity', 'zip'])(
      'is refused when it is compressed: %s',
      async (coding) => {
        server.routes['/'] = (_, response) => {
          response.writeHead(200, { 'Content-Encoding': coding });
          response.end(gzipSync(Buffer.alloc(1_000)));
        };
        const metrics = new Metrics();
        const guard = new Outbound({ outboundAllow: ['127.0.0.1'] }, metrics);
        opened.push(guard);
        await expect(guard.fetch(url())).rejects.toThrow(
          `"127.0.0.1:${server.port}" sent a compressed answer, which was not asked for`,
        );
        expect(server.headers[0]!['accept-encoding']).toBe('identity');
        expect((await metrics.render()).body).toContain(
          'baton_limit_exceeded_total{limit="compressedAnswer"} 1',
        );
      },
    );

    it('may say that it is not compressed', async () => {
      server.routes['/'] = (_, response) => {
        response.writeHead(200, { 'content-encoding': 'identity' }).end('hello');
      };
      expect(await (await local().fetch(url())).text()).toBe('hello');
    });

    it('keeps all its bytes when each is a chunk of its own, and is read in few parts', async () => {
      const bytes = Array.from({ length: 40_000 }, (_, index) => String(index % 10));
      server.routes['/'] = (_, { socket }) => {
        const chunks = bytes.map((each) => `1\r\n${each}\r\n`).join('');
        socket!.write(`HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunks}0\r\n\r\n`);
      };
      const { body } = await local().fetch(url());
      const parts: Buffer[] = [];
      for await (const part of body!) parts.push(Buffer.from(part));
      expect(Buffer.concat(parts).toString()).toBe(bytes.join(''));
      expect(parts.length).toBeLessThan(400);
    });

    it('may be large, and arrives whole for a reader that takes it bit by bit', async () => {
      const sent = Buffer.alloc(4_000_000, 'abcdefg');
      server.routes['/'] = (_, response) => void response.end(sent);
      const { body } = await local().fetch(url());
      const parts: Buffer[] = [];
      for await (const part of body!) {
        parts.push(Buffer.from(part));
        await new Promise(setImmediate);
      }
      expect(Buffer.concat(parts).equals(sent)).toBe(true);
    });

    it('that breaks off fails', async () => {
      server.routes['/'] = (_, response) => {
        response.writeHead(200, { 'content-length': 10 });
        response.write('hello', () => response.destroy());
      };
      const answer = await local().fetch(url());
      await expect(answer.text()).rejects.toThrow();
    });
  });

  it('leads to the allowed port of a host only', async () => {
    const answer = await outbound([`127.0.0.1:${server.port}`]).fetch(url());
    expect(answer.status).toBe(200);
    await expect(outbound(['127.0.0.1:1']).fetch(url())).rejects.toThrow('OUTBOUND_ALLOW');
    await expect(outbound(['localhost:1']).fetch(url('localhost'))).rejects.toThrow('OUTBOUND_ALLOW');
  });

  it('does not say where a name leads', async () => {
    const refused = outbound([], named(['10.1.2.3'])).fetch('http://internal.example/');
    await expect(refused).rejects.toThrow('"internal.example" is not at a public address');
    await expect(refused).rejects.not.toThrow('10.1.2.3');
  });

  it('answers alike for a private name and for none, and logs which for the operator', async () => {
    const none = Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' });
    let lines = '';
    const log = createLogger({ logLevel: 'info' }, 'worker', { write: (line) => void (lines += line) });
    const resolve: Resolve = (name) =>
      ['none.example', 'away.example'].includes(name)
        ? Promise.reject(none)
        : Promise.resolve(name === 'empty.example' ? [] : [{ address: '10.1.2.3', family: 4 }]);
    const guard = new Outbound({ outboundAllow: ['away.example:80'] }, undefined, resolve, log);
    opened.push(guard);
    const reasonOf = async (host: string) => {
      const error: unknown = await guard.fetch(`http://${host}/`).catch((reason: unknown) => reason);
      return [(error as Error).name, failureReason(error)?.replaceAll(host, 'x')];
    };
    const internal = await reasonOf('internal.example');
    expect(internal).toEqual(['OutboundRefused', expect.stringContaining('"x" is not at a public address')]);
    expect(await reasonOf('none.example')).toEqual(internal);
    expect(await reasonOf('empty.example')).toEqual(internal);
    expect(lines).toMatch(/"host":"internal.example","reason":"none of its addresses is public"/);
    expect(lines).toMatch(/"host":"none.example","reason":"the name does not exist"/);
    // A name of the operator's may come back.
    await expect(guard.fetch('http://away.example/')).rejects.toMatchObject({ cause: none });
  });

  it('asks for the address of a name once, and connects to the one that was checked', async () => {
    // Both are this machine; only the first is allowed. A second look-up would get the second.
    const resolve = jest.fn(named(['127.0.0.1'], ['127.0.0.2']));
    const answer = await outbound(['127.0.0.1'], resolve).fetch(url('rebinding.example'), {
      headers: { connection: 'close' },
    });
    expect(await answer.text()).toBe('hello');
    expect(resolve).toHaveBeenCalledTimes(1);
  });

  it('checks the address of a name anew for every connection', async () => {
    const { fetch } = outbound(['127.0.0.1'], named(['127.0.0.1'], ['127.0.0.2']));
    server.routes['/'] = (_, response) => response.setHeader('connection', 'close').end('bye');
    expect(await (await fetch(url('rebinding.example'))).text()).toBe('bye');
    await expect(fetch(url('rebinding.example'))).rejects.toThrow('"rebinding.example" is not at a public');
    expect(server.asked).toHaveLength(1);
  });

  it('goes only to those addresses of a name that are allowed', async () => {
    const answer = await outbound(['127.0.0.1'], named(['10.0.0.1', '127.0.0.1'])).fetch(url('two.example'));
    expect(await answer.text()).toBe('hello');
  });

  it.each([
    ['file:///etc/passwd', 'must begin with https:// or http://'],
    ['data:text/plain,hi', 'must begin with https:// or http://'],
    ['http://me:secret@127.0.0.1/', 'must not hold a user name or password'],
    ['not a url', 'not a URL'],
    ['http://127.0.0.1:25/', 'the port of "127.0.0.1:25" is not one for HTTP'],
  ])('refuse %s', async (wrong, reason) => {
    await expect(local().fetch(wrong)).rejects.toThrow(reason);
    await expect(local().fetch(wrong)).rejects.not.toThrow('secret');
  });

  it.each(['ftp://example.com', 'https://me@example.com', 'example.com'])(
    'is none for %s in settings',
    (wrong) => {
      expect(outboundUrl.safeParse(wrong).success).toBe(false);
    },
  );

  it('follows redirects within the origin', async () => {
    server.routes['/1'] = redirect(307, '/2');
    server.routes['/2'] = redirect(302, url('127.0.0.1', '/3'));
    const headers = { authorization: 'Bearer x', 'content-type': 'text/plain' };
    const answer = await local().fetch(url('127.0.0.1', '/1'), { method: 'POST', body: 'b', headers });
    expect(await answer.text()).toBe('hello');
    expect(server.asked).toEqual(['POST /1', 'POST /2', 'GET /3']);
    expect(server.headers.map(({ authorization }) => authorization)).toEqual(Array(3).fill('Bearer x'));
    expect(server.headers[2]).not.toHaveProperty('content-type');
  });

  it.each(['http://localhost/', '//127.0.0.2/', 'https://127.0.0.1/', 'file:///etc/passwd'])(
    'does not follow a redirect to %s, allowed or not',
    async (location) => {
      server.routes['/'] = redirect(302, location);
      const { fetch } = outbound(['127.0.0.0/8', 'localhost']);
      await expect(fetch(url())).rejects.toThrow(/redirects to \S+, which is not followed/);
      expect(server.asked).toHaveLength(1);
    },
  );

  it('gives up when redirects do not end', async () => {
    server.routes['/'] = redirect(302, '/');
    await expect(local().fetch(url())).rejects.toThrow('redirects too often');
    expect(server.asked).toHaveLength(6);
  });

  it('takes no answer that is larger than allowed', async () => {
    const fetch = local().fetchWithin({ maxBytes: 10 });
    server.routes['/'] = (_, response) => response.end('0123456789');
    expect(await (await fetch(url())).text()).toBe('0123456789');
    server.routes['/'] = (_, response) => response.end('0123456789a');
    await expect((await fetch(url())).text()).rejects.toThrow('sent an answer of more than 10 bytes');
  });

  it('takes a stream of any length whose events are small', async () => {
    const fetch = local().fetchWithin({ maxBytes: 16 });
    const stream = (...chunks: string[]) => {
      server.routes['/'] = (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        for (const chunk of chunks) response.write(chunk);
        response.end();
      };
    };
    stream(...Array<string>(50).fill('data: hello\r\n\r\n'));
    expect(await (await fetch(url())).text()).toHaveLength(50 * 15);
    stream('data: hello\n\n', 'data: hello, hello, hello');
    await expect((await fetch(url())).text()).rejects.toThrow('sent an event of more than 16 bytes');
  });

  it('waits no longer than it may, and no longer than its caller', async () => {
    server.routes['/'] = () => undefined;
    await expect(local().fetchWithin({ timeoutMs: 20 })(url())).rejects.toMatchObject({
      name: 'TimeoutError',
    });
    const caller = AbortSignal.abort(new Error('gone'));
    await expect(local().fetch(url(), { signal: caller })).rejects.toThrow('gone');
  });

  it('goes straight to its target, whatever proxy the environment names', async () => {
    const proxy = new LoopbackServer();
    await proxy.start();
    const before = process.env;
    const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY'];
    const proxies = Object.fromEntries(names.map((name) => [name, `http://127.0.0.1:${proxy.port}`]));
    process.env = { ...before, ...proxies, NODE_USE_ENV_PROXY: '1' };
    try {
      expect(await (await local().fetch(url('127.0.0.1', '/direct'))).text()).toBe('hello');
      expect([server.asked, proxy.asked]).toEqual([['GET /direct'], []]);
    } finally {
      process.env = before;
      await proxy.stop();
    }
  });

  it('takes a request as well as a URL', async () => {
    const request = new Request(url('127.0.0.1', '/a'), {
      method: 'PUT',
      body: 'b',
      headers: { 'x-a': '1' },
    });
    expect((await local().fetch(request)).status).toBe(200);
    expect(server.asked).toEqual(['PUT /a']);
    expect(server.headers[0]).toMatchObject({ 'x-a': '1' });
  });
});
