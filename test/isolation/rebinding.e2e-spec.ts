import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { NIGHTLY } from '../support/nightly.js';
import { freePort } from '../support/ports.js';
import { DRIVERS } from '../support/index.js';
import { NameServer } from '../support/name-server.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack, type TestTenant } from '../support/stack.js';

/** What the operator allows, in place of a public address; and an address inside of the operator's network. */
const [PUBLIC, INSIDE] = ['127.0.0.1', '127.0.0.2'];

describe('a name that leads outside when it is checked, and inside when it is called', () => {
  let names: NameServer;
  let stack: Stack;
  let tenant: TestTenant;
  let port: number;
  let servers: Server[];
  /** Requests by the address of the server that got them. */
  const got: Record<string, string[]> = { [PUBLIC]: [], [INSIDE]: [] };
  /** Questions for the address of each name. */
  const asked = new Map<string, number>();

  async function serve(address: string): Promise<Server> {
    const server = createServer((request, response) => {
      got[address]!.push(`${request.headers.host} ${request.method} ${request.url}`);
      request.resume();
      // A connection that stays open would be used again, without another question for the name.
      response.setHeader('connection', 'close');
      // No caller may follow this redirect.
      if (request.url?.startsWith('/hop')) response.writeHead(307, { location: `http://${INSIDE}:${port}/` });
      response.end('{}');
    });
    server.listen(port, address);
    await once(server, 'listening');
    return server;
  }

  beforeAll(async () => {
    port = await freePort();
    servers = [await serve(PUBLIC), await serve(INSIDE)];
    names = await new NameServer({
      '*': (question) => {
        const [type, name = ''] = question.split(' ');
        if (type !== 'A') return { a: [] };
        const times = (asked.get(name) ?? 0) + 1;
        asked.set(name, times);
        // Both at once, or one after the other.
        if (name.startsWith('both')) return { a: [INSIDE, PUBLIC] };
        return { a: [times === 1 ? PUBLIC : INSIDE] };
      },
    }).start();
    stack = await Stack.start({
      driver: DRIVERS[0]!,
      workers: 1,
      env: {
        OUTBOUND_ALLOW: PUBLIC,
        OUTBOUND_DNS: names.address,
        PUSH_NOTIFICATIONS: 'all',
        PUSH_FIRST_RETRY_MS: '200',
        PUSH_MAX_RETRY_MS: '400',
        BATON_MASTER_KEY: randomBytes(32).toString('base64'),
      },
    });
    tenant = await stack.createTenant('admin', 'agents:call');
    const origins = [`http://${PUBLIC}:${port}`, ...['both', 'then'].map((kind) => urlOf(kind, 'model'))];
    await ask('PUT', 'secrets/openai', { value: 'sk-test', origins });
  });
  afterAll(async () => {
    await stack.stop();
    await names.stop();
    for (const server of servers) server.close();
    for (const server of servers) server.closeAllConnections();
  });

  const urlOf = (kind: string, door: string): string => `http://${kind}-${door}.example:${port}`;

  async function ask(method: string, path: string, body: object): Promise<{ id?: string }> {
    const answer = await fetch(`${stack.apis[0]!.url}/v1/${path}`, {
      method,
      headers: { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${text}`);
    return text === '' ? {} : (JSON.parse(text) as { id?: string });
  }

  const agent = (slug: string, runtime: string, config: object) =>
    ask('PUT', `agents/${slug}`, { name: slug, description: 'Calls.', runtime, config });
  const send = (slug: string, params: object = sendParams('go')) =>
    new RawCaller(stack.url(0, slug), tenant.token).call('SendMessage', params);
  const llm = (more: object) => ({
    model: 'openai/gpt-5-mini',
    baseUrl: `http://${PUBLIC}:${port}/v1`,
    retries: 0,
    ...more,
  });

  /** By door: opens it for a host, and returns how it is gone through. */
  const DOORS: Record<string, (url: string, slug: string) => Promise<() => Promise<unknown>>> = {
    remote: async (url, slug) => {
      await agent(slug, 'remote-a2a', { card: url });
      return () => send(slug);
    },
    redirect: async (url, slug) => {
      await agent(slug, 'remote-a2a', { card: `${url}/hop/card.json` });
      return () => send(slug);
    },
    mcp: async (url, slug) => {
      await agent(slug, 'llm', llm({ tools: { mcp: [{ name: 'crm', url: `${url}/mcp` }] } }));
      return () => send(slug);
    },
    model: async (url, slug) => {
      await agent(slug, 'llm', llm({ baseUrl: `${url}/v1` }));
      return () => send(slug);
    },
    webhook: async (url) => {
      const { id } = await ask('POST', 'webhooks', { url: `${url}/hook` });
      return () => ask('POST', `webhooks/${id}/test`, {});
    },
    push: async (url) => {
      const configuration = { taskPushNotificationConfig: { url: `${url}/push` } };
      return () => send('echo', { ...sendParams('go'), configuration });
    },
    file: async (url, slug) => {
      await agent(slug, 'llm', llm({}));
      const { message } = sendParams('look') as { message: { parts: object[] } };
      const file = { url: `${url}/picture.png`, mediaType: 'image/png' };
      return () =>
        send(slug, {
          message: { ...message, messageId: randomBytes(8).toString('hex'), parts: [...message.parts, file] },
        });
    },
  };

  // By day the way out itself is asked for each kind (outbound.spec), and here each door for one.
  const KINDS = NIGHTLY ? ['then', 'both'] : ['both'];
  it.each(Object.keys(DOORS).flatMap((door) => KINDS.map((kind) => [door, kind] as const)))(
    'never leads inside: %s, %s',
    async (door, kind) => {
      const name = `${kind}-${door}.example`;
      const go = await DOORS[door]!(urlOf(kind, door), `${kind}-${door}`);
      // The cache keeps an address for a second: until the name was asked for again, calls may go outside.
      do await go().catch(() => undefined);
      while ((asked.get(name) ?? 0) < 2);
      for (let i = 0; i < 3; i++) await go().catch(() => undefined);
      expect(got[INSIDE]).toEqual([]);
      if (kind === 'both') expect(got[PUBLIC]!.some((request) => request.startsWith(name))).toBe(true);
    },
  );
});
