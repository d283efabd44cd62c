import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { driversOf, nightlyDescribe, nightlyIt } from '../support/nightly.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { PATIENT, TestMcpServer } from '../support/mcp-server/mcp-server.js';
import { type ModernMcpServer, startModernServer } from '../support/mcp-server/modern-server.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { TestBrowser, TestOAuthServer } from '../support/oauth-server.js';
import { freePort } from '../support/ports.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { RemoteAgent } from '../support/remote-agent/remote-agent.js';
import { Stack } from '../support/stack.js';

const ENV = {
  ...CRASH_SETTINGS,
  OUTBOUND_ALLOW: '127.0.0.1',
  BATON_MASTER_KEY: randomBytes(32).toString('base64'),
  LOG_LEVEL: 'debug',
};
const says = (text: string) => ({ content: [{ type: 'text' as const, text }] });

describe.each(driversOf('postgres'))('an MCP server with OAuth, over %j', (driver) => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-sign-in-'));
  let stack: Stack;
  let provider: ModelProvider;
  let modern: ModernMcpServer;
  let legacy: TestMcpServer;
  let slug: string;
  /** Called with each call of the tool. */
  let onLook: () => unknown = () => undefined;
  let token: string;

  beforeAll(async () => {
    const look = () => {
      onLook();
      return says('Ada lives in London');
    };
    const tools = [{ name: 'look', call: look }];
    [stack, provider, modern, legacy] = await Promise.all([
      Stack.start({ driver, workers: 1, env: ENV }),
      ModelProvider.start(),
      startModernServer({ tools }),
      new TestMcpServer({ tools: [] }).start(),
    ]);
    ({ slug, token } = await stack.createTenant('admin'));
  });
  afterAll(async () => {
    await Promise.all([stack.stop(), provider.stop(), modern.stop(), legacy.stop()]);
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(() => provider.reset());

  /** An agent with the server, and who calls it. */
  async function agentWith(name: string, server: TestOAuthServer, more: object = {}): Promise<RawCaller> {
    const mcp = [{ ...PATIENT, name: 'crm', url: server.resource, oauth: {}, ...more }];
    const config = { model: 'openai-compatible/desk-1', baseUrl: provider.url, tools: { mcp } };
    const file = join(folder, `${name}.json`);
    writeFileSync(file, JSON.stringify({ name, description: name, runtime: 'llm', config }));
    await stack.baton('agents', 'create', '--tenant', slug, '--file', file, '--slug', name);
    return new RawCaller(stack.url(0, name), token);
  }

  const rest = async (method: string, path: string, body?: object) => {
    const response = await fetch(new URL(path, stack.url(0)), {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    return (response.status === 204 ? {} : await response.json()) as Record<string, never>;
  };

  /** The link of a sign-in, at the API of the test. */
  async function linkFor(agent: string): Promise<string> {
    const { url } = (await rest('POST', '/v1/connections', { agent })) as unknown as { url: string };
    const { pathname, search } = new URL(url);
    return new URL(pathname + search, stack.url(0)).href;
  }

  const send = async (caller: RawCaller, text = 'Where does Ada live?', more: object = {}) =>
    (await caller.call('SendMessage', sendParams(text, more))).result!.task;

  interface Waiting {
    id: string;
    status: {
      state: string;
      message: { parts: { text?: string; data?: { sign_in?: { url: string } } }[] };
    };
  }

  /** The link that a task shows, at the API of the test. */
  function linkOf({ status }: Waiting): string {
    expect(status.state).toBe('TASK_STATE_AUTH_REQUIRED');
    const { url } = status.message.parts.find(({ data }) => data)!.data!.sign_in!;
    expect(status.message.parts[0]!.text).toContain(url);
    const { pathname, search } = new URL(url);
    return new URL(pathname + search, stack.url(0)).href;
  }

  /** Resolves with a task when it is in this state. */
  async function reached(caller: RawCaller, id: string, state: string) {
    for (;;) {
      const { result } = await caller.call('GetTask', { id });
      const { status } = result as unknown as Waiting;
      if (status.state === state) return result!;
      if (status.state === 'TASK_STATE_FAILED') throw new Error(JSON.stringify(status));
      await setTimeout(50);
    }
  }

  it.each([
    ['of the newest revision', () => modern.url],
    ['with sessions', () => legacy.url],
  ])(
    '%s is used with a sign-in of the tenant, by any worker, and no token is shown',
    async (what, target) => {
      legacy.tools = [
        {
          name: 'look',
          description: 'Looks',
          inputSchema: { type: 'object' },
          call: () => says('Ada lives in London'),
        },
      ] as never;
      const server = await TestOAuthServer.start(target());
      const name = what.includes('sessions') ? 'old-desk' : 'desk';
      const caller = await agentWith(name, server);
      try {
        const failed = await send(caller);
        expect(failed.status.state).toBe('TASK_STATE_FAILED');
        expect(failed.status.message.parts[0].text).toContain('there is no sign-in at 127.0.0.1');
        const browser = new TestBrowser();
        const link = await linkFor(name);
        const page = await browser.open(link);
        expect(page.text).toContain(`The agent <b>${name}</b> wants to use <b>${server.resource}</b>`);
        expect(await browser.signIn(link)).toMatchObject({
          status: 200,
          text: expect.stringContaining('Signed in'),
        });
        // The token is refused: it is refreshed, and the request sent again.
        server.expireAccess();
        await stack.replaceWorkers();
        provider.reply({ calls: [{ name: 'crm_look', input: {} }] }, { text: 'In London.' });
        const done = await send(caller);
        expect(done.status.state).toBe('TASK_STATE_COMPLETED');
        expect(server.refreshes).toBe(1);
        expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain('Ada lives in London');
        const shown = [
          JSON.stringify(provider.requests),
          JSON.stringify(done),
          ...[...stack.apis, ...stack.workers].map(({ log }) => log()),
        ].join('\n');
        expect(server.given.length).toBeGreaterThan(1);
        for (const given of server.given) expect(shown).not.toContain(given);
        const { connections } = (await rest('GET', '/v1/connections')) as unknown as {
          connections: { id: string; resource: string }[];
        };
        const { id } = connections.find(({ resource }) => resource === server.resource)!;
        await rest('DELETE', `/v1/connections/${id}`);
        expect(server.revoked).toContain(server.given.at(-1));
        expect((await send(caller)).status.state).toBe('TASK_STATE_FAILED');
      } finally {
        await server.stop();
      }
    },
  );

  describe('where each caller signs in', () => {
    const perCaller = { oauth: { credentials: 'perCaller' }, neverRepeat: 'all' };
    let server: TestOAuthServer;
    beforeEach(async () => {
      server = await TestOAuthServer.start(modern.url);
    });
    afterEach(() => server.stop());

    it('a task waits without a worker, and goes on by itself on another one', async () => {
      const name = `each-${driver}`;
      const ada = await agentWith(name, server, perCaller);
      const waiting = (await send(ada)) as Waiting;
      const link = linkOf(waiting);
      await stack.killWorkers();
      provider.reply({ calls: [{ name: 'crm_look', input: {} }] }, { text: 'In London.' });
      const { text } = await new TestBrowser().open(link);
      expect(text).toContain(`The agent <b>${name}</b> wants to use`);
      expect(text).toContain('for the caller token:');
      expect(await new TestBrowser().signIn(link)).toMatchObject({ status: 200 });
      await stack.addWorker();
      await reached(ada, waiting.id, 'TASK_STATE_COMPLETED');
      // The same caller need not sign in again; another one must, and no sign-in of the tenant counts.
      provider.reply({ text: 'Again.' });
      expect((await send(ada)).status.state).toBe('TASK_STATE_COMPLETED');
      const bob = new RawCaller(stack.url(0, name), await stack.createToken(slug, 'agents:call'));
      const his = (await send(bob)) as Waiting;
      expect(linkOf(his)).not.toBe(link);
      expect(server.authorizations).toHaveLength(1);
      const logs = [...stack.apis, ...stack.workers].map(({ log }) => log()).join('');
      for (const given of server.given) expect(logs + JSON.stringify(provider.requests)).not.toContain(given);
      // Two tasks of one caller: one sign-in wakes both.
      const other = (await send(bob)) as Waiting;
      provider.reply({ text: 'One.' }, { text: 'Two.' });
      await new TestBrowser().signIn(linkOf(other));
      await Promise.all([his, other].map(({ id }) => reached(bob, id, 'TASK_STATE_COMPLETED')));
    });

    nightlyIt(
      'a call that is refused in the middle of a task is made after the sign-in, without a question',
      async () => {
        const caller = await agentWith(`middle-${driver}`, server, perCaller);
        const first = (await send(caller)) as Waiting;
        provider.reply({ text: 'Signed in.' });
        await new TestBrowser().signIn(linkOf(first));
        await reached(caller, first.id, 'TASK_STATE_COMPLETED');
        const calls = modern.calls.length;
        onLook = () => {
          server.expireAccess();
          server.expireRefresh();
          onLook = () => undefined;
        };
        const look = { calls: [{ name: 'crm_look', input: {} }] };
        provider.reply(look, look);
        const waiting = (await send(caller)) as Waiting;
        provider.reply({ text: 'In London.' });
        await new TestBrowser().signIn(linkOf(waiting));
        await reached(caller, waiting.id, 'TASK_STATE_COMPLETED');
        expect(modern.calls.length).toBe(calls + 2);
      },
    );

    nightlyIt(
      'a call for which the sign-in has too few scopes is made after a wider one, and no server asks twice',
      async () => {
        const caller = await agentWith(`wider-${driver}`, server, perCaller);
        const first = (await send(caller)) as Waiting;
        provider.reply({ text: 'Signed in.' });
        await new TestBrowser().signIn(linkOf(first));
        await reached(caller, first.id, 'TASK_STATE_COMPLETED');
        expect(server.authorizations.at(-1)?.get('scope')).toBe('tools');
        const calls = modern.calls.length;
        let wanted = 'crm:read';
        server.wants = (body) => (body.includes('"tools/call"') ? wanted : undefined);
        const look = { calls: [{ name: 'crm_look', input: {} }] };
        provider.reply(look);
        const waiting = (await send(caller)) as Waiting;
        expect(waiting.status.message.parts[0]!.text).toContain(
          'your sign-in at 127.0.0.1:' + new URL(server.url).port + ' lacks the scope crm:read',
        );
        const link = linkOf(waiting);
        await stack.killWorkers();
        provider.reply({ text: 'In London.' });
        await new TestBrowser().signIn(link);
        await stack.addWorker();
        await reached(caller, waiting.id, 'TASK_STATE_COMPLETED');
        expect(server.authorizations.at(-1)?.get('scope')).toBe('tools crm:read');
        expect(modern.calls.length).toBe(calls + 1);
        // The authorization server does not grant it: the model reads why, and no caller is asked again.
        wanted = 'crm:write';
        server.grants = (scope) => scope.replace(' crm:write', '');
        provider.reply(look);
        const denied = (await send(caller)) as Waiting;
        provider.reply({ text: 'I may not look.' });
        await new TestBrowser().signIn(linkOf(denied));
        await reached(caller, denied.id, 'TASK_STATE_COMPLETED');
        expect(JSON.stringify(provider.requests.at(-1)?.body)).toContain(
          'it wants the scope crm:write, for which the last sign-in has asked already',
        );
        expect(modern.calls.length).toBe(calls + 1);
      },
    );

    // By day `oauth-connections.int-spec` has the record, and `modern-servers.spec` that it comes before the call.
    nightlyIt(
      'the audit log says with whose sign-in an agent has called, and for whom, before the call is made',
      async () => {
        const name = `audited-${driver}`;
        const ada = await agentWith(name, server, perCaller);
        const bob = new RawCaller(stack.url(0, name), await stack.createToken(slug, 'agents:call'));
        interface Called {
          actor: object;
          target: object;
          detail: { subject: string; caller: string; task: string };
        }
        const called = async () => {
          const { records } = (await rest('GET', '/v1/audit?action=tool.called&limit=100')) as unknown as {
            records: Called[];
          };
          return records.filter(({ actor }) => (actor as { key: string }).key === `agent:${name}`);
        };
        const seen: Promise<Called[]>[] = [];
        onLook = () => seen.push(called());
        const tasks: string[] = [];
        for (const caller of [ada, bob]) {
          const waiting = (await send(caller)) as Waiting;
          provider.reply(
            { calls: [{ name: 'crm_look', input: { of: 'my own words' } }] },
            { text: 'In London.' },
          );
          await new TestBrowser().signIn(linkOf(waiting));
          await reached(caller, waiting.id, 'TASK_STATE_COMPLETED');
          tasks.push(waiting.id);
        }
        onLook = () => undefined;
        expect((await Promise.all(seen)).map(({ length }) => length)).toEqual([1, 2]);
        const records = await called();
        expect(records.map(({ detail }) => detail.task)).toEqual(tasks.reverse());
        for (const record of records) {
          const { subject } = record.detail;
          expect(record).toMatchObject({
            actor: { kind: 'agent', name: `${name} for ${subject}` },
            target: { kind: 'tool', name: 'look' },
            detail: { caller: subject, server: 'crm', resource: server.resource, callId: expect.any(String) },
          });
        }
        expect(new Set(records.map(({ detail }) => detail.subject)).size).toBe(2);
        expect(JSON.stringify(records)).not.toContain('my own words');
        for (const given of server.given) expect(JSON.stringify(records)).not.toContain(given);
      },
    );

    nightlyIt('the task of a parent shows the link, and goes on with its child', async () => {
      const child = `child-${driver}`;
      await agentWith(child, server, perCaller);
      const file = join(folder, 'parent.json');
      const config = { model: 'openai-compatible/desk-1', baseUrl: provider.url, agents: [child] };
      writeFileSync(file, JSON.stringify({ name: 'Parent', description: 'Asks', runtime: 'llm', config }));
      await stack.baton('agents', 'create', '--tenant', slug, '--file', file, '--slug', `parent-${driver}`);
      const caller = new RawCaller(stack.url(0, `parent-${driver}`), token);
      provider.reply({ calls: [{ name: `ask_${child}`, input: { message: 'Where does Ada live?' } }] });
      const waiting = (await send(caller)) as Waiting;
      const link = linkOf(waiting);
      provider.reply({ text: 'In London.' }, { text: 'It says: in London.' });
      await new TestBrowser().signIn(link);
      await reached(caller, waiting.id, 'TASK_STATE_COMPLETED');
      expect(JSON.stringify(provider.requests)).not.toContain('/oauth/sign-in');
    });
  });

  it('a user of an issuer need not sign in where its token is exchanged, and its own token goes to no other server', async () => {
    const server = await TestOAuthServer.start(modern.url);
    server.exchangers.set('baton', 'hunter2');
    server.givesRefreshAtExchange = false;
    const name = `exchanged-${driver}`;
    try {
      await stack.addIssuer(server.issuer, '--tenant', slug, '--audience', 'baton', '--allow-http');
      await rest('PUT', '/v1/secrets/exchanger', { value: 'hunter2', origins: [server.url] });
      const client = { issuer: server.issuer, clientId: 'baton', clientSecret: 'exchanger' };
      const stranger = await agentWith(name, server, { oauth: { credentials: 'exchange', ...client } });
      const tokens = await Promise.all(['ada', 'bob'].map((user) => server.userToken(user)));
      const look = [{ calls: [{ name: 'crm_look', input: {} }] }, { text: 'In London.' }];
      for (const each of tokens) {
        provider.reply(...look);
        const done = await send(new RawCaller(stack.url(0, name), each));
        expect(done.status.state).toBe('TASK_STATE_COMPLETED');
      }
      const actors = server.used.map((used) => server.access.get(used));
      expect(new Set(actors.map((each) => JSON.stringify([each?.sub, each?.act])))).toEqual(
        new Set(['["ada",{"sub":"baton"}]', '["bob",{"sub":"baton"}]']),
      );
      const { records } = (await rest('GET', '/v1/audit?action=tool.called&limit=2')) as unknown as {
        records: { detail: { subject: string; resource: string } }[];
      };
      expect(new Set(records.map(({ detail }) => detail.subject)).size).toBe(2);
      for (const { detail } of records)
        expect(detail).toMatchObject({
          subject: expect.stringMatching(/^user:/),
          resource: server.resource,
        });
      // It is over in the middle of a task, and cannot be refreshed: the next message of the user signs in again.
      server.expireAccess();
      const ada = new RawCaller(stack.url(0, name), await server.userToken('ada'));
      const waiting = (await send(ada)) as { id: string; status: { state: string } };
      expect(waiting.status.state).toBe('TASK_STATE_AUTH_REQUIRED');
      provider.reply(...look);
      const again = await send(ada, 'Here I am', { taskId: waiting.id });
      expect(again.status.state).toBe('TASK_STATE_COMPLETED');
      // A token of Baton is not exchanged: its caller gets a link.
      const { length } = server.exchanges;
      expect((await send(stranger)).status.state).toBe('TASK_STATE_AUTH_REQUIRED');
      expect(server.exchanges).toHaveLength(length);
      const shown = [
        JSON.stringify([provider.requests, modern.calls, server.used, records]),
        ...[...stack.apis, ...stack.workers].map(({ log }) => log()),
      ].join();
      for (const each of tokens) expect(shown).not.toContain(each);
      const logs = [...stack.apis, ...stack.workers].map(({ log }) => log()).join();
      for (const given of [...server.given, 'hunter2']) expect(logs).not.toContain(given);
    } finally {
      await server.stop();
    }
  });

  // By day `remote-sign-in.spec` has these.
  nightlyDescribe('a remote agent at which each caller signs in', () => {
    let remote: RemoteAgent;
    let server: TestOAuthServer;
    let caller: RawCaller;
    const name = `far-${driver}`;

    beforeAll(async () => {
      const port = await freePort();
      server = await TestOAuthServer.start(`http://127.0.0.1:${port}/a2a`);
      remote = await RemoteAgent.start({ version: '1.0', port, sendsTo: server.resource });
      const card = (await (await fetch(remote.cardUrl)).text()).replaceAll('/mcp/a2a', '/mcp');
      server.answers.set('/mcp/.well-known/agent-card.json', () => ({ json: JSON.parse(card) }));
      const config = { card: server.resource, oauth: { credentials: 'perCaller' } };
      const file = join(folder, `${name}.json`);
      writeFileSync(file, JSON.stringify({ name, description: name, runtime: 'remote-a2a', config }));
      await stack.baton('agents', 'create', '--tenant', slug, '--file', file, '--slug', name);
      caller = new RawCaller(stack.url(0, name), token);
    });
    afterAll(() => Promise.all([server.stop(), remote.kill()]));

    const answerOf = ({ artifacts }: Record<string, { parts: { text: string }[] }[]>): string =>
      artifacts!.flatMap(({ parts }) => parts.map(({ text }) => text)).join('');

    it('gets the message after the sign-in, from another worker, and that of no other caller', async () => {
      const waiting = (await send(caller, 'hello')) as Waiting;
      const link = linkOf(waiting);
      expect(remote.methods).not.toContain('SendStreamingMessage');
      await stack.killWorkers();
      expect((await new TestBrowser().open(link)).text).toContain(`The agent <b>${name}</b> wants to use`);
      expect(await new TestBrowser().signIn(link)).toMatchObject({ status: 200 });
      await stack.addWorker();
      expect(answerOf(await reached(caller, waiting.id, 'TASK_STATE_COMPLETED'))).toBe('hello');
      expect(answerOf(await send(caller, 'again'))).toBe('again');
      const bob = new RawCaller(caller.url, await stack.createToken(slug, 'agents:call'));
      linkOf((await send(bob, 'mine')) as Waiting);
      expect(server.authorizations).toHaveLength(1);
      expect(JSON.stringify(remote.asked)).not.toContain('mine');
    });

    it('is followed to the end of its task, although the sign-in has ended in the middle', async () => {
      remote.executor.holdAfter(2);
      const before = remote.asked.length;
      let said = '';
      let waiting: Waiting | undefined;
      for await (const { data } of caller.stream('SendStreamingMessage', sendParams('count 4'))) {
        const { task, statusUpdate, artifactUpdate } = data.result!;
        waiting = { ...waiting, ...task, ...(statusUpdate && { status: statusUpdate.status }) };
        for (const { text } of artifactUpdate?.artifact.parts ?? []) said += text as string;
        if (waiting?.status.state === 'TASK_STATE_AUTH_REQUIRED') break;
        if (said !== '1 2 ' || server.access.size === 0) continue;
        server.expireAccess();
        server.expireRefresh();
        await remote.kill();
        const dead = remote;
        remote = await remote.restart();
        remote.asked.unshift(...dead.asked);
      }
      const link = linkOf(waiting!);
      await stack.killWorkers();
      await new TestBrowser().signIn(link);
      await stack.addWorker();
      remote.executor.release();
      expect(answerOf(await reached(caller, waiting!.id, 'TASK_STATE_COMPLETED'))).toBe('1 2 3 4 ');
      const methods = remote.methods.slice(before);
      expect(methods.filter((method) => method === 'SendStreamingMessage')).toHaveLength(1);
      expect(methods).not.toContain('CancelTask');
    });

    it('gets the message once the sign-in has the required scope', async () => {
      server.wants = (body) => (body.includes('SendStreamingMessage') ? 'far:write' : undefined);
      const before = remote.methods.length;
      const waiting = (await send(caller, 'write')) as Waiting;
      const link = linkOf(waiting);
      expect(waiting.status.message.parts[0]!.text).toContain('lacks the scope far:write');
      expect(remote.methods.slice(before)).toEqual([]);
      await new TestBrowser().signIn(link);
      expect(answerOf(await reached(caller, waiting.id, 'TASK_STATE_COMPLETED'))).toBe('write');
    });
  });

  it('is signed in by the browser that has opened the link, once', async () => {
    const server = await TestOAuthServer.start(modern.url);
    await agentWith('careful', server);
    try {
      const link = await linkFor('careful');
      const [ada, eve] = [new TestBrowser(), new TestBrowser()];
      const back = await ada.consent(link);
      expect((await eve.open(`${link}&go=1`)).text).toContain('another browser has opened this link');
      expect((await eve.open(back)).status).toBe(400);
      expect((await ada.open(back.replace(/state=[^&]+/, (state) => `${state.slice(0, -1)}_`))).status).toBe(
        400,
      );
      expect((await ada.open(back)).text).toContain('Signed in');
      expect((await ada.open(back)).text).toContain('this sign-in is over');
      expect((await ada.open(link)).text).toContain('this link is over');
      // A code that was used before.
      const again = await linkFor('careful');
      const other = new URL(await ada.consent(again));
      other.searchParams.set('code', new URL(back).searchParams.get('code')!);
      expect((await ada.open(other.href)).text).toContain('invalid_grant');
    } finally {
      await server.stop();
    }
  });

  it('whose authorization server leads inside, or is another one, makes no sign-in', async () => {
    const server = await TestOAuthServer.start(modern.url);
    await agentWith('betrayed', server);
    try {
      server.metadata = { token_endpoint: 'https://169.254.169.254/token' };
      const inside = await new TestBrowser().open(`${await linkFor('betrayed')}&go=1`);
      expect(inside).toMatchObject({ status: 502, text: expect.stringContaining('169.254.169.254') });
      server.metadata = {};
      server.iss = 'https://evil.example';
      const other = await new TestBrowser().signIn(await linkFor('betrayed'));
      expect(other.text).toContain('does not come from the authorization server that was asked');
      expect(server.tokenRequests).toEqual([]);
    } finally {
      await server.stop();
    }
  });
});
