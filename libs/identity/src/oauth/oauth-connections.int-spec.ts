import {
  AuditStore,
  CatalogClient,
  Database,
  IssuerStore,
  OAuthConnectionStore,
  OAuthSignInStore,
  PLATFORM_ACTOR,
  SecretStore,
  TenantStore,
  TokenStore,
} from '@baton/database';
import { SubjectToken, TaskState } from '@baton/a2a';
import { NO_EGRESS_LISTS, Outbound } from '@baton/outbound';
import { createLogger } from '@baton/telemetry';
import { randomBytes, randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { v7 as uuid } from 'uuid';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { TestBrowser, TestOAuthServer } from '../../../../test/support/oauth-server.js';
import type { LimitsService } from '../limits.service.js';
import { Secrets } from '../secrets.js';
import { OAuthConnections } from './oauth-connections.js';
import { OAuthSignIns } from './oauth-sign-ins.js';
import { TokenExchanges } from './token-exchanges.js';

const REDIRECT = 'https://baton.example/oauth/callback';
const [one, two] = [randomBytes(32), randomBytes(32)];

let database: TestDatabase;
let server: TestOAuthServer;
let acme: string;
const open: { close(): Promise<void> }[] = [];

/** What one process has: connections of its own to Postgres. */
function startProcess(masterKey = one, ...previousMasterKeys: Buffer[]) {
  const catalog = new CatalogClient(database.url);
  const sql = new Database({ url: database.url, poolSize: 2 });
  open.push(catalog, sql);
  const environment = { masterKey, previousMasterKeys };
  const secrets = new Secrets(new SecretStore(catalog), environment);
  const outbound = new Outbound({ outboundAllow: ['127.0.0.1'] });
  const limits = { egress: () => Promise.resolve(NO_EGRESS_LISTS) } as unknown as LimitsService;
  const signInStore = new OAuthSignInStore(sql, catalog);
  const store = new OAuthConnectionStore(sql, catalog);
  const connections = new OAuthConnections(store, signInStore, secrets, outbound, limits, environment);
  const log: string[] = [];
  const logger = createLogger({ logLevel: 'debug' }, 'api', { write: (line: string) => void log.push(line) });
  const exchanges = new TokenExchanges(connections, signInStore, logger);
  const signIns = new OAuthSignIns(signInStore, connections);
  return { catalog, sql, secrets, connections, signIns, exchanges, log };
}
let main: ReturnType<typeof startProcess>;

beforeAll(async () => {
  [database, server] = await Promise.all([createDatabase(), TestOAuthServer.start()]);
  main = startProcess();
  acme = (await new TenantStore(main.catalog).create('acme', PLATFORM_ACTOR)).id;
});
afterAll(async () => {
  await Promise.all(open.map((each) => each.close()));
  await Promise.all([database.drop(), server.stop()]);
});
beforeEach(async () => {
  server.metadata = {};
  server.resourceMetadata = {};
  server.iss = undefined;
  server.grants = (scope) => scope;
  server.lifetime = 3600;
  server.answers.clear();
  await sql('DELETE FROM oauth_connections');
});

async function sql(text: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: database.url });
  await client.connect();
  await client.query(`SET baton.tenant = 'system'`);
  const { rows } = await client.query<Record<string, unknown>>(text);
  await client.end();
  return rows;
}

const settings = { credentials: 'tenant' } as const;
const key = (caller: string | null = null) => ({ tenantId: acme, resource: server.resource, caller });
const wanted = (more: object = {}) => ({
  tenantId: acme,
  caller: null,
  url: server.resource,
  settings,
  agent: 'desk',
  createdBy: 'token:1',
  ...more,
});

/** A browser opens the link, and the authorization server sends it back. */
async function answered(more: object = {}) {
  const { ticket } = await main.signIns.begin(wanted(more), PLATFORM_ACTOR);
  const opened = await main.signIns.open(ticket, undefined, REDIRECT);
  const back = new URL((await new TestBrowser().open(opened!.url)).location);
  return { kept: opened!.kept, answer: Object.fromEntries(back.searchParams) as Record<string, string> };
}

async function signIn(more: object = {}): Promise<void> {
  const { answer, kept } = await answered(more);
  await main.signIns.finish(answer, kept, {});
}

describe('a token with too few scopes', () => {
  it('needs a sign-in with those that it has and those that are asked for, once', async () => {
    await signIn();
    const first = await main.connections.token(key());
    expect(await main.connections.wider(key(), first!, ['read'])).toEqual({ scopes: ['tools', 'read'] });
    server.grants = () => 'tools';
    await signIn({ settings: { ...settings, scopes: ['tools', 'read'] } });
    const second = await main.connections.token(key());
    // Of the sign-in before.
    expect(await main.connections.wider(key(), first!, ['read'])).toEqual({ token: second });
    expect(await main.connections.wider(key(), second!, ['read'])).toBeUndefined();
    expect(await main.connections.wider(key(), second!, ['read', 'write'])).toEqual({
      scopes: ['tools', 'read', 'write'],
    });
    const many = Array.from({ length: 100 }, (_, i) => `scope-${i}`);
    expect(await main.connections.wider(key(), second!, many)).toBeUndefined();
    // What was asked for outlives a refresh.
    const third = await main.connections.token(key(), second);
    expect(third).not.toBe(second);
    expect(await main.connections.wider(key(), third!, ['read'])).toBeUndefined();
  });
});

describe('a call with a sign-in', () => {
  const call = (more: object = {}) => ({
    id: uuid(),
    target: { kind: 'tool' as const, name: 'look' },
    agent: 'desk',
    detail: { task: 't-1', caller: 'token:1', server: 'crm', ...more },
  });
  const records = () => new AuditStore(main.sql).list({ tenantId: acme, action: 'tool.called', limit: 10 });

  it('is in the audit log once: whose sign-in it uses, which agent makes it, and for whom', async () => {
    await signIn();
    await signIn({ caller: 'user:ada' });
    const [shared, own] = [call(), call({ caller: 'user:ada' })];
    expect(await main.connections.noteCall(key(), shared)).toBe(true);
    // The answer of Postgres was lost.
    expect(await main.connections.noteCall(key(), shared)).toBe(true);
    expect(await main.connections.noteCall(key('user:ada'), own)).toBe(true);
    const ids = Object.fromEntries(
      (await main.connections.list(acme, { limit: 10 })).map(({ caller, id }) => [String(caller), id]),
    );
    const { resource } = server;
    const target = { kind: 'tool', name: 'look' };
    const detail = { task: 't-1', server: 'crm', resource };
    expect(await records()).toMatchObject([
      {
        id: own.id,
        actor: { kind: 'agent', key: 'agent:desk', name: 'desk for user:ada' },
        target,
        detail: { ...detail, subject: 'user:ada', caller: 'user:ada', connection: ids['user:ada'] },
      },
      {
        id: shared.id,
        actor: { kind: 'agent', key: 'agent:desk', name: 'desk for the tenant' },
        target,
        detail: { ...detail, subject: 'tenant', caller: 'token:1', connection: ids.null },
      },
    ]);
  });

  it('is not, and must not be made, without a sign-in', async () => {
    const before = await records();
    expect(await main.connections.noteCall(key(), call())).toBe(false);
    await signIn();
    await sql(`UPDATE oauth_connections SET ended = 'refused'`);
    expect(await main.connections.noteCall(key(), call())).toBe(false);
    expect(await records()).toEqual(before);
  });
});

describe('a sign-in at a server', () => {
  it('registers no client where the authorization server reads who Baton is', async () => {
    server.metadata = { client_id_metadata_document_supported: true };
    const before = server.registrations.length;
    await signIn();
    expect(server.authorizations.at(-1)?.get('client_id')).toBe('https://baton.example/oauth/client.json');
    expect(server.tokenRequests.at(-1)?.get('client_id')).toBe('https://baton.example/oauth/client.json');
    expect(server.registrations).toHaveLength(before);
    expect(await main.connections.token(key())).toBeDefined();
  });

  it('gives the tenant a token for it, with PKCE, the resource, and a client that is registered once', async () => {
    await signIn();
    const token = await main.connections.token(key());
    expect(server.access.get(token!)).toMatchObject({ resource: server.resource, scope: 'tools' });
    await signIn();
    expect(server.registrations).toHaveLength(1);
    expect(server.registrations[0]).toMatchObject({
      application_type: 'web',
      redirect_uris: [REDIRECT],
      token_endpoint_auth_method: 'none',
    });
    expect(server.authorizations.at(-1)?.get('code_challenge_method')).toBe('S256');
    expect(server.tokenRequests.at(-1)?.get('resource')).toBe(server.resource);
    const [row] = await main.connections.list(acme, { limit: 10 });
    expect(row).toMatchObject({
      resource: server.resource,
      caller: null,
      issuer: server.issuer,
      scope: 'tools',
      ended: null,
      isRefreshable: true,
    });
    const stored = JSON.stringify(
      await sql(`SELECT encode(ciphertext, 'escape') AS c, c.* FROM oauth_connections c`),
    );
    for (const given of server.given) expect(stored).not.toContain(given);
  });

  it('takes the client of the settings, and its secret', async () => {
    await main.secrets.set(acme, 'desk-client', 'hunter2', [server.url], PLATFORM_ACTOR);
    const registered = {
      credentials: 'tenant',
      issuer: server.issuer,
      clientId: 'desk',
      clientSecret: 'desk-client',
      scopes: ['a', 'b'],
    };
    await signIn({ settings: registered });
    expect(server.access.get((await main.connections.token(key()))!)).toMatchObject({
      clientId: 'desk',
      scope: 'a b',
    });
    expect(server.registrations).toHaveLength(1);
  });

  it('is refused with another state, another browser, another issuer, and a second time', async () => {
    const { answer, kept } = await answered();
    const refused = (change: object, its: string | null = kept) =>
      expect(main.signIns.finish({ ...answer, ...change }, its ?? undefined, {})).rejects.toThrow(
        'this sign-in is over',
      );
    await refused({ state: answer.state!.slice(0, -3) + 'AAA' });
    await refused({ state: 'x' });
    await refused({}, 'another');
    await refused({}, null);
    await main.signIns.finish(answer, kept, {});
    await refused({});
    const other = await answered();
    const elsewhere = main.signIns.finish({ ...other.answer, iss: 'https://evil.example' }, other.kept, {});
    await expect(elsewhere).rejects.toThrow('does not come from the authorization server that was asked');
    const silent = await answered();
    const { iss: _, ...without } = silent.answer;
    await expect(main.signIns.finish(without, silent.kept, {})).rejects.toThrow('does not come from');
  });

  it('ends with a plain reason where a person refuses', async () => {
    const { answer, kept } = await answered();
    const { code: _, ...rest } = answer;
    await expect(main.signIns.finish({ ...rest, error: 'access_denied' }, kept, {})).rejects.toThrow(
      'the sign-in was refused',
    );
  });

  const begun = async (): Promise<unknown> => {
    const { ticket } = await main.signIns.begin(wanted(), PLATFORM_ACTOR);
    return main.signIns.open(ticket, undefined, REDIRECT);
  };

  it.each([
    ['leads inside', { token_endpoint: 'https://10.0.0.1/token' }, /"10\.0\.0\.1"/],
    ['sends people inside', { authorization_endpoint: 'https://192.168.1.1/' }, /"192\.168\.1\.1"/],
    ['has no TLS', { authorization_endpoint: 'http://1.1.1.1/authorize' }, /is not an https URL/],
    [
      'leads to a script',
      { authorization_endpoint: 'javascript:alert(1)' },
      /not one of OAuth|not an https URL/,
    ],
    ['is of another issuer', { issuer: 'https://other.example' }, /is that of another issuer/],
    ['has no PKCE', { code_challenge_methods_supported: ['plain'] }, /S256/],
  ])('uses no authorization server whose metadata %s', async (_what, metadata, reason) => {
    server.metadata = metadata;
    await expect(begun()).rejects.toThrow(reason);
  });

  it('uses no metadata of another resource, and none at an address inside', async () => {
    server.resourceMetadata = { resource: 'https://other.example/mcp' };
    await expect(begun()).rejects.toThrow('is for another resource');
    server.resourceMetadata = { authorization_servers: ['https://10.1.2.3'] };
    await expect(begun()).rejects.toThrow('"10.1.2.3"');
  });

  it('reads no answer without an end', async () => {
    let close: () => void = () => undefined;
    const closed = new Promise<void>((resolve) => (close = resolve));
    server.answers.set('/.well-known/oauth-authorization-server/as', () => ({
      stream: (response) => {
        const more = (): void =>
          void (
            response.destroyed ||
            (response.write('x'.repeat(65_536)) ? setImmediate(more) : response.once('drain', more))
          );
        response.once('close', () => close());
        more();
      },
    }));
    await expect(begun()).rejects.toThrow(/larger|too large|bytes/);
    await closed;
  });
});

describe('the token of a user', () => {
  const settings = () => ({
    credentials: 'exchange' as const,
    issuer: server.issuer,
    clientId: 'baton',
    clientSecret: 'exchanger',
    scopes: ['tools'],
    audience: 'crm',
  });
  const target = () => ({ url: server.resource, settings: settings() });
  const userOf = async (name: string) => ({
    tenantId: acme,
    by: { kind: 'user' as const, key: `user:${name}`, requestId: 'r-1' },
    subject: new SubjectToken(server.issuer, await server.userToken(name)),
    taskId: null as string | null,
  });

  beforeEach(async () => {
    server.exchanges.length = 0;
    server.givesRefreshAtExchange = true;
    server.exchangers.set('baton', 'hunter2');
    await main.secrets.set(acme, 'exchanger', 'hunter2', [server.url], PLATFORM_ACTOR);
  });

  it('is exchanged for one that names the user and Baton, once, and with a record', async () => {
    const ada = await userOf('ada');
    await Promise.all(Array.from({ length: 5 }, () => main.exchanges.ensureSignedIn(ada, target())));
    await main.exchanges.ensureSignedIn(ada, target());
    const token = await main.connections.token(key('user:ada'));
    expect(server.access.get(token!)).toMatchObject({
      sub: 'ada',
      act: { sub: 'baton' },
      resource: server.resource,
      scope: 'tools',
    });
    expect(server.exchanges.map((asked) => [asked.get('subject_token'), asked.get('audience')])).toEqual([
      [ada.subject.reveal(), 'crm'],
    ]);
    expect(await main.connections.token(key('user:bob'))).toBeUndefined();
    const [record] = await new AuditStore(main.sql).list({
      tenantId: acme,
      action: 'connection.sign-in',
      limit: 1,
    });
    expect(record).toMatchObject({
      actor: { kind: 'user', key: 'user:ada' },
      requestId: 'r-1',
      detail: { caller: 'user:ada', issuer: server.issuer, exchanged: true },
    });
    // It is refreshed as any other.
    await sql(`UPDATE oauth_connections SET refresh_at = now() - interval '1 second'`);
    const second = await main.connections.token(key('user:ada'));
    expect(second).not.toBe(token);
    expect(server.access.get(second!)).toMatchObject({ sub: 'ada', act: { sub: 'baton' } });
  });

  it('lets waiting tasks go on, but leaves the task of its message to this message', async () => {
    const [answered, other] = [randomUUID(), randomUUID()];
    for (const taskId of [answered, other]) {
      await sql(`
        INSERT INTO tasks (tenant_id, id, agent_id, context_id, context_key, state, status, status_at, last_sequence, artifacts_sequence, wakes_at)
        VALUES ('${acme}', '${taskId}', 'desk', 'c', '${taskId}', ${TaskState.TASK_STATE_AUTH_REQUIRED}, '{}', now(), 1, 0, 'infinity')`);
      const waiting = { tenantId: acme, caller: 'user:fay', taskId, agent: 'desk' };
      await main.signIns.beginForTask(waiting, target());
    }
    await main.exchanges.ensureSignedIn({ ...(await userOf('fay')), taskId: answered }, target());
    const due =
      await sql(`SELECT id::text, wakes_at <= now() AS due, wakes_at < now() + interval '1 minute' AS soon
      FROM tasks WHERE id IN ('${answered}', '${other}')`);
    expect(due).toHaveLength(2);
    expect(due).toContainEqual({ id: answered, due: false, soon: true });
    expect(due).toContainEqual({ id: other, due: true, soon: true });
  });

  it('is exchanged again when what came for it is over, and cannot be refreshed', async () => {
    server.givesRefreshAtExchange = false;
    await main.exchanges.ensureSignedIn(await userOf('cy'), target());
    const first = await main.connections.token(key('user:cy'));
    await sql(`UPDATE oauth_connections SET refresh_at = now() - interval '1 second'`);
    await main.exchanges.ensureSignedIn(await userOf('cy'), target());
    const second = await main.connections.token(key('user:cy'));
    expect(second).not.toBe(first);
    expect(await main.connections.token(key('user:cy'), second)).toBeUndefined();
    await main.exchanges.ensureSignedIn(await userOf('cy'), target());
    expect(await main.connections.token(key('user:cy'))).toBeDefined();
    expect(server.exchanges).toHaveLength(3);
  });

  const type = 'urn:ietf:params:oauth:token-type:access_token';
  it.each<[string, (token: string) => object, RegExp]>([
    [
      'is refused',
      (token) => ({ status: 400, json: { error: 'invalid_grant', error_description: `no: ${token}` } }),
      /invalid_grant \(no: \[removed\]\)/,
    ],
    ['is answered with no error of OAuth', (token) => ({ status: 500, json: token }), /has failed/],
    [
      'comes back as it is',
      (token) => ({ json: { access_token: token, token_type: 'Bearer', issued_token_type: type } }),
      /answers with the token that it was sent/,
    ],
    [
      'is exchanged for one of another type',
      () => ({ json: { access_token: 'x', token_type: 'N_A', issued_token_type: type } }),
      /tokens of the type N_A/,
    ],
    [
      'is exchanged for an assertion',
      () => ({ json: { access_token: 'x', token_type: 'Bearer', issued_token_type: 'id-jag' } }),
      /one of another type/,
    ],
  ])('that %s signs nobody in, and is in no log', async (what, answer, reason) => {
    const user = await userOf(what);
    server.answers.set('/as/token', () => answer(user.subject.reveal()));
    main.log.length = 0;
    await main.exchanges.ensureSignedIn(user, target());
    expect(await main.connections.token(key(user.by.key))).toBeUndefined();
    expect(main.log).toEqual([expect.stringContaining('the token of a caller was not exchanged')]);
    expect(main.log[0]).toMatch(reason);
    expect(main.log[0]).not.toContain(user.subject.reveal());
    expect(main.log[0]).not.toContain('hunter2');
  });

  it('is not sent where the client may not, or where its metadata leads inside', async () => {
    await main.secrets.set(acme, 'exchanger', 'hunter2', ['https://other.example.com'], PLATFORM_ACTOR);
    await main.exchanges.ensureSignedIn(await userOf('dee'), target());
    await main.secrets.set(acme, 'exchanger', 'hunter2', [server.url], PLATFORM_ACTOR);
    server.metadata = { token_endpoint: 'https://169.254.169.254/token' };
    await main.exchanges.ensureSignedIn(await userOf('eve'), target());
    expect(server.exchanges).toEqual([]);
  });
});

describe('a task that waits for its caller', () => {
  const caller = 'user:ada';

  it('has a link, shares it with no other task, and one sign-in ends them all', async () => {
    const [one, two] = [randomUUID(), randomUUID()];
    const waiting = (taskId: string) => ({ tenantId: acme, caller, taskId, agent: 'desk' });
    const each = { url: server.resource, settings: { credentials: 'perCaller' } as const };
    const first = await main.signIns.beginForTask(waiting(one), each);
    // Of a parent: what its child waits for.
    const second = await main.signIns.beginForTask(waiting(two), { childTaskId: one });
    expect(second?.ticket).not.toBe(first?.ticket);
    expect(await main.signIns.find(second?.ticket)).toMatchObject({ caller, resource: server.resource });
    // It asks again: the link of before is over.
    const again = await main.signIns.beginForTask(waiting(one), each);
    expect(await main.signIns.find(first?.ticket)).toBeUndefined();
    const opened = await main.signIns.open(again!.ticket, undefined, REDIRECT);
    const back = new URL((await new TestBrowser().open(opened!.url)).location);
    await main.signIns.finish(Object.fromEntries(back.searchParams), opened!.kept, {});
    expect(await main.signIns.find(second?.ticket)).toBeUndefined();
    expect(await main.signIns.beginForTask(waiting(two), { childTaskId: one })).toBeUndefined();
    expect(await main.connections.token(key(caller))).toBeDefined();
    expect(await main.connections.token(key())).toBeUndefined();
    expect(await main.connections.token(key('user:bob'))).toBeUndefined();
  });

  it('has no second link when the time of the first has passed', async () => {
    const waiting = { tenantId: acme, caller, taskId: randomUUID(), agent: 'desk' };
    const each = { url: server.resource, settings: { credentials: 'perCaller' } as const };
    await main.signIns.beginForTask(waiting, each);
    await sql(`UPDATE oauth_sign_ins SET expires_at = now() - interval '1 second'`);
    expect(await main.signIns.beginForTask(waiting, each)).toBeUndefined();
  });
});

describe('tokens', () => {
  const due = () => sql(`UPDATE oauth_connections SET refresh_at = now() - interval '1 second'`);

  it('are refreshed once by five workers at the moment of expiry, and the sign-in stays', async () => {
    await signIn();
    const before = await main.connections.token(key());
    await due();
    server.refreshes = 0;
    const workers = Array.from({ length: 5 }, () => startProcess());
    const tokens = await Promise.all(workers.map(({ connections }) => connections.token(key())));
    expect(new Set(tokens).size).toBe(1);
    expect(tokens[0]).not.toBe(before);
    expect(server.access.has(tokens[0]!)).toBe(true);
    expect([server.refreshes, server.thefts]).toEqual([1, []]);
    // The refresh token that has come is stored.
    await due();
    expect(server.access.has((await workers[3]!.connections.token(key()))!)).toBe(true);
    expect(server.thefts).toEqual([]);
  });

  it('that the server refuses are refreshed once, by all who were refused', async () => {
    await signIn();
    const refused = await main.connections.token(key());
    server.refreshes = 0;
    const tokens = await Promise.all([1, 2, 3].map(() => startProcess().connections.token(key(), refused)));
    expect([new Set(tokens).size, server.refreshes]).toEqual([1, 1]);
  });

  it.each([3600, 20])('of %d seconds say when they expire', async (lifetime) => {
    server.lifetime = lifetime;
    const before = Date.now();
    await signIn();
    const after = Date.now();
    const [row] = await main.connections.list(acme, { limit: 10 });
    const begun = row!.expiresAt!.getTime() - lifetime * 1000;
    // The database has a clock of its own, but on the same machine.
    expect(begun).toBeGreaterThanOrEqual(before - 1000);
    expect(begun).toBeLessThanOrEqual(after + 1000);
  });

  it('without a time, or of another master key, say that it is not known', async () => {
    server.lifetime = undefined;
    await signIn();
    const [row] = await startProcess(two).connections.list(acme, { limit: 10 });
    expect(row).toMatchObject({ expiresAt: null, isRefreshable: null });
    expect(row).not.toHaveProperty('sealed');
  });

  it('are over when their refresh is refused, with a record', async () => {
    await signIn();
    server.expireRefresh();
    await due();
    expect(await main.connections.token(key())).toBeUndefined();
    const [row] = await main.connections.list(acme, { limit: 10 });
    expect(row?.ended).toContain('the refresh was refused');
    expect(row?.expiresAt).toBeNull();
    const actions = (await sql('SELECT action FROM audit_records ORDER BY id')).map(({ action }) => action);
    expect(actions.slice(-3)).toEqual(['connection.begin', 'connection.sign-in', 'connection.end']);
  });

  it('stay when the authorization server is away', async () => {
    await signIn();
    await due();
    server.answers.set('/as/token', () => ({ status: 503, json: {} }));
    await expect(main.connections.token(key())).rejects.toThrow();
    server.answers.clear();
    expect(server.access.has((await main.connections.token(key()))!)).toBe(true);
  });

  it('are revoked and deleted at sign-out', async () => {
    await signIn();
    const token = await main.connections.token(key());
    const [row] = await main.connections.list(acme, { limit: 10 });
    expect(await main.connections.signOut(acme, row!.id, PLATFORM_ACTOR)).toBe(true);
    expect(server.revoked).toContain(token);
    expect(await main.connections.token(key())).toBeUndefined();
    expect(await main.connections.signOut(acme, row!.id, PLATFORM_ACTOR)).toBe(false);
  });

  it('are encrypted again with a new master key', async () => {
    await signIn();
    const token = await main.connections.token(key());
    const next = startProcess(two, one);
    const rotation = await next.secrets.rotate();
    expect(rotation).toMatchObject({ failures: [] });
    const only = startProcess(two);
    expect(await only.connections.token(key())).toBe(token);
    expect((await only.connections.storedClient(acme, server.issuer))?.client.client_id).toBe('client-1');
    await startProcess(one, two).secrets.rotate();
  });

  it('of a caller are deleted with its token', async () => {
    const tokens = new TokenStore(main.catalog);
    const [{ id }] = (await sql(
      `INSERT INTO api_tokens (tenant_id, id, name, hash, prefix, scopes) VALUES ('${acme}', gen_random_uuid(), 'x', '\\x00', 'baton_x', '{}') RETURNING id`,
    )) as [{ id: string }];
    await signIn({ caller: `token:${id}` });
    expect(await main.connections.token(key(`token:${id}`))).toBeDefined();
    expect(await main.connections.token(key())).toBeUndefined();
    await tokens.revoke(acme, id, PLATFORM_ACTOR);
    expect(await sql('SELECT 1 FROM oauth_connections')).toEqual([]);
  });

  it('of users are deleted and revoked with their issuer, and those of others stay', async () => {
    const issuers = new IssuerStore(main.catalog);
    const other = (await new TenantStore(main.catalog).create('other', PLATFORM_ACTOR)).id;
    const trust = async (tenantId: string, issuer: string, audience: string) => {
      const rights = {
        selector: null,
        jwksUrl: null,
        subjectClaim: 'sub',
        scopes: [],
        grants: [],
        agents: [],
      };
      const result = await issuers.add(
        { tenantId, issuer, audience, requestsPerSecond: null, ...rights },
        PLATFORM_ACTOR,
      );
      if ('conflict' in result) throw new Error('the issuer is there already');
      return result.added;
    };
    const removed = await trust(acme, 'https://id.example', 'one');
    const same = await trust(acme, 'https://id.example', 'two');
    const foreign = await trust(other, 'https://id.example', 'three');
    await issuers.noteUser(removed, 'user:ada');
    await issuers.noteUser(removed, 'user:ada');
    // Uses both entries, and is still trusted by the other one.
    await issuers.noteUser(removed, 'user:bob');
    await issuers.noteUser(same, 'user:bob');
    await issuers.noteUser(foreign, 'user:ada');
    for (const caller of ['user:ada', 'user:bob', 'user:eve', null]) await signIn({ caller });
    const token = await main.connections.token(key('user:ada'));
    const { ticket } = await main.signIns.begin(wanted({ caller: 'user:ada' }), PLATFORM_ACTOR);
    const { ticket: kept } = await main.signIns.begin(wanted({ caller: 'user:bob' }), PLATFORM_ACTOR);

    expect(await issuers.remove(other, foreign.id, PLATFORM_ACTOR)).toMatchObject({ signedOut: [] });
    const { signedOut } = (await issuers.remove(acme, removed.id, PLATFORM_ACTOR))!;
    await main.connections.revokeDeleted(signedOut);
    expect(server.revoked).toContain(token);
    expect(await sql('SELECT caller FROM oauth_connections ORDER BY caller')).toEqual([
      { caller: '' },
      { caller: 'user:bob' },
      { caller: 'user:eve' },
    ]);
    expect(await main.signIns.find(ticket)).toBeUndefined();
    expect(await main.signIns.find(kept)).toBeDefined();
    expect(await sql('SELECT caller FROM issuer_users')).toEqual([{ caller: 'user:bob' }]);
    const [record] = await sql(
      `SELECT detail FROM audit_records WHERE action = 'issuer.remove' AND tenant_id = '${acme}'`,
    );
    expect(record).toMatchObject({ detail: { signedOut: 1 } });
    expect((await issuers.remove(acme, same.id, PLATFORM_ACTOR))?.signedOut).toMatchObject([
      { caller: 'user:bob' },
    ]);
    // The user was noted while the issuer was removed.
    await issuers.noteUser(same, 'user:bob');
    expect(await sql('SELECT 1 FROM issuer_users')).toEqual([]);
  });
});
