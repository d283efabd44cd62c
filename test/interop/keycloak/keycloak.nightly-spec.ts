// Keycloak as the identity provider: its users call agents, sign in to the console, and use tool servers that trust it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import type { Page } from 'playwright-core';
import { ConsoleStack, describeConsole } from '../../support/console.js';
import { type ModernMcpServer, startModernServer } from '../../support/mcp-server/modern-server.js';
import { ModelProvider } from '../../support/model-provider/model-provider.js';
import { freePort } from '../../support/ports.js';
import { RawCaller, sendParams } from '../../support/raw-caller.js';
import { GuardedTools } from './guarded-tools.js';
import { Keycloak, RUN } from './keycloak.js';
import { whatIsMissing } from '../../support/prepared.js';

const missing = whatIsMissing(RUN);
const REALM = 'acme';
const LOOK = [{ calls: [{ name: 'crm_look', input: {} }] }, { text: 'In London.' }];

const user = (username: string, realmRoles: string[] = []) => ({
  username,
  realmRoles,
  enabled: true,
  email: `${username}@example.com`,
  emailVerified: true,
  firstName: username,
  lastName: username,
  credentials: [{ type: 'password', value: username, temporary: false }],
});

/** Puts a client into `aud` of the access tokens of the client that has it. */
const audience = (client: string) => ({
  name: `audience ${client}`,
  protocol: 'openid-connect',
  protocolMapper: 'oidc-audience-mapper',
  config: { 'included.custom.audience': client, 'access.token.claim': 'true' },
});

/** As docs/operating/sign-in.md and docs/agents/sign-in.md say how to set up Keycloak. */
const realmFor = (baton: string) => ({
  realm: REALM,
  enabled: true,
  revokeRefreshToken: true,
  refreshTokenMaxReuse: 0,
  roles: { realm: [{ name: 'support' }] },
  users: [user('ada'), user('bob', ['support'])],
  clients: [
    {
      clientId: 'app',
      publicClient: true,
      directAccessGrantsEnabled: true,
      redirectUris: [`${baton}/*`],
      webOrigins: [baton],
      protocolMappers: [audience('baton')],
    },
    {
      clientId: 'baton',
      secret: 'hunter2',
      redirectUris: [`${baton}/oauth/callback`],
      attributes: { 'standard.token.exchange.enabled': 'true' },
      protocolMappers: [audience('crm')],
    },
    { clientId: 'crm', secret: 'hunter3' },
  ],
});

const title = `Keycloak${missing === undefined ? '' : ` (${missing})`}`;
const describeHere =
  missing === undefined ? describeConsole : (name: string, tests: () => void) => describe.skip(name, tests);

describeHere(title, () => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-keycloak-'));
  let keycloak: Keycloak;
  let baton: ConsoleStack;
  let provider: ModelProvider;
  let modern: ModernMcpServer;
  let tools: GuardedTools;
  let slug: string;
  let token: string;

  beforeAll(async () => {
    const port = String(await freePort());
    keycloak = await Keycloak.start();
    const issuer = keycloak.issuer(REALM);
    const publicUrl = `http://127.0.0.1:${port}`;
    await keycloak.createRealm(realmFor(publicUrl));
    const look = () => ({ content: [{ type: 'text', text: 'Ada lives in London' }] });
    [baton, provider, modern] = await Promise.all([
      ConsoleStack.start({
        env: {
          PORT: port,
          PUBLIC_URL: publicUrl,
          BATON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
          OUTBOUND_ALLOW: '127.0.0.1',
          CONSOLE_OIDC_ISSUER: issuer,
          CONSOLE_OIDC_CLIENT_ID: 'app',
        },
      }),
      ModelProvider.start(),
      startModernServer({ tools: [{ name: 'look', call: look }] }),
    ]);
    tools = await GuardedTools.start(issuer, modern.url);
    ({ slug, token } = await baton.stack.createTenant('admin'));
    const grant = 'tasks:read if /realm_access/roles=support';
    const of = ['--tenant', slug, '--audience', 'baton', '--allow-http', '--grant', grant];
    await baton.stack.addIssuer(issuer, ...of);
    await rest('PUT', '/v1/secrets/exchanger', token, { value: 'hunter2', origins: [keycloak.url] });
  });
  afterAll(async () => {
    await Promise.all([baton.stop(), provider.stop(), modern.stop(), tools.stop(), keycloak.stop()]);
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(() => provider.reset());

  const rest = async (method: string, path: string, bearer: string, body?: object) => {
    const response = await fetch(new URL(path, baton.stack.url(0)), {
      method,
      headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    return (response.status === 204 ? {} : await response.json()) as Record<string, never>;
  };

  /** An llm agent with the guarded tools. */
  async function createAgent(name: string, credentials: string): Promise<void> {
    const client = { issuer: keycloak.issuer(REALM), clientId: 'baton', clientSecret: 'exchanger' };
    const oauth = { credentials, ...client, ...(credentials === 'exchange' && { audience: 'crm' }) };
    const mcp = [{ name: 'crm', url: tools.resource, oauth }];
    const config = { model: 'openai-compatible/desk-1', baseUrl: provider.url, tools: { mcp } };
    const file = join(folder, `${name}.json`);
    writeFileSync(file, JSON.stringify({ name, description: name, runtime: 'llm', config }));
    await baton.stack.baton('agents', 'create', '--tenant', slug, '--file', file, '--slug', name);
  }

  const send = async (agent: string, bearer: string) => {
    const caller = new RawCaller(baton.stack.url(0, agent), bearer);
    return (await caller.call('SendMessage', sendParams('Where does Ada live?'))).result!.task;
  };

  /** The state in which a task ends. */
  async function endOf(caller: RawCaller, id: string): Promise<string> {
    for (;;) {
      const { result } = await caller.call('GetTask', { id });
      const { state } = (result as unknown as { status: { state: string } }).status;
      if (['TASK_STATE_COMPLETED', 'TASK_STATE_FAILED'].includes(state)) return state;
      await setTimeout(50);
    }
  }

  /** Fills in the form of Keycloak. */
  async function signIn(page: Page, name: string): Promise<void> {
    await page.getByLabel('Username or email').fill(name);
    await page.locator('input[type=password]').fill(name);
    await page.keyboard.press('Enter');
  }

  it('gives its users the rights of their realm roles', async () => {
    const [ada, bob] = await Promise.all(['ada', 'bob'].map((name) => keycloak.userToken(REALM, name)));
    const { id, status: done } = await send('echo', ada!);
    expect(done.state).toBe('TASK_STATE_COMPLETED');
    const seen = async (bearer: string) =>
      ((await rest('GET', '/v1/tasks', bearer)) as unknown as { tasks: { task_id: string }[] }).tasks.map(
        (each) => each.task_id,
      );
    expect(await seen(ada!)).toEqual([id]);
    expect(await seen(bob!)).toEqual([id]);
    await send('echo', bob!);
    expect(await seen(ada!)).toEqual([id]);
    expect(await seen(bob!)).toHaveLength(2);
  });

  it('exchanges their tokens for those of a tool server, with the user and Baton as the client', async () => {
    await createAgent('exchanged', 'exchange');
    const ada = await keycloak.userToken(REALM, 'ada');
    provider.reply(...LOOK);
    expect((await send('exchanged', ada)).status.state).toBe('TASK_STATE_COMPLETED');
    const { sub } = JSON.parse(Buffer.from(ada.split('.')[1]!, 'base64url').toString()) as { sub: string };
    expect(tools.callers.at(-1)).toMatchObject({ sub, azp: 'baton', aud: 'crm' });
    expect(JSON.stringify([modern.calls, provider.requests])).not.toContain(ada);
  });

  it('signs a caller in with a link, refreshes with rotating tokens, and ends the session at the sign-out', async () => {
    await createAgent('linked', 'perCaller');
    provider.reply(...LOOK);
    const waiting = await send('linked', token);
    expect(waiting.status.state).toBe('TASK_STATE_AUTH_REQUIRED');
    const { parts } = waiting.status.message as unknown as {
      parts: { data?: { sign_in: { url: string } } }[];
    };
    const page = await baton.open();
    await page.goto(parts.find(({ data }) => data)!.data!.sign_in.url);
    await page.getByRole('link').first().click();
    await signIn(page, 'bob');
    await page.getByText('Signed in').waitFor();
    const caller = new RawCaller(baton.stack.url(0, 'linked'), token);
    expect(await endOf(caller, waiting.id)).toBe('TASK_STATE_COMPLETED');
    // Keycloak takes each refresh token once: a second refresh needs the token that came with the first.
    for (let refresh = 0; refresh < 2; refresh += 1) {
      const { jti } = tools.refuseLast();
      provider.reply(...LOOK);
      expect((await send('linked', token)).status.state).toBe('TASK_STATE_COMPLETED');
      expect(tools.callers.at(-1)!.jti).not.toBe(jti);
    }
    expect(await keycloak.sessionsAt(REALM, 'bob', 'baton')).toBe(1);
    const { connections } = (await rest('GET', '/v1/connections', token)) as unknown as {
      connections: { id: string; caller: string | null; resource: string }[];
    };
    const mine = connections.find((each) => each.caller !== null && !each.caller.startsWith('user:'))!;
    await rest('DELETE', `/v1/connections/${mine.id}`, token);
    expect(await keycloak.sessionsAt(REALM, 'bob', 'baton')).toBe(0);
  });

  it('signs people in to the console', async () => {
    const page = await baton.open();
    await page.getByRole('button', { name: /^Sign in at/ }).click();
    await signIn(page, 'bob');
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Tasks' }).click();
    await page.getByText('Where does Ada live?').first().waitFor();
  });
});
