import { TENANT_SCOPES } from '@baton/a2a';
import { loadEnvironment } from '@baton/config';
import { AuditStore, Database, OperatorTokenStore, WorkerStore } from '@baton/database';
import { OperatorTokens, TokenService } from '@baton/identity';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { ApiModule } from '../api.module.js';
import { createFastifyAdapter, listen, prepareApi, shutDown } from '../server.js';

type Json = Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- tests look at the wire

let database: TestDatabase;
let app: NestFastifyApplication;
let url: string;
let managementUrl: string;
let operator: string;

beforeAll(async () => {
  database = await createDatabase();
  const environment = loadEnvironment({
    ...{ DATABASE_URL: database.url, HOST: '127.0.0.1', PORT: '0', LOG_LEVEL: 'silent', API_GRACE_MS: '200' },
    ...{ MANAGEMENT_PORT: '0', UNAUTHENTICATED_PER_SECOND: '0' },
  });
  app = await NestFactory.create(ApiModule.use(environment), createFastifyAdapter(environment), {
    ...{ bodyParser: false, logger: false, abortOnError: false },
  });
  prepareApi(app);
  const listening = await listen(app);
  url = listening.url;
  managementUrl = listening.managementUrl!;
  operator = (await app.get(OperatorTokens, { strict: false }).issue('ops', null)).secret;
});
afterAll(async () => {
  await shutDown(app);
  await database.drop();
});

async function ask(method: string, path: string, body?: object, token = operator) {
  const response = await fetch(`${managementUrl}/v1/admin/${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, json: (text === '' ? {} : JSON.parse(text)) as Json };
}

describe('tokens of operators', () => {
  it('count at once when they are revoked or expired', async () => {
    const tokens = app.get(OperatorTokens, { strict: false });
    const { secret, token } = await tokens.issue('other', new Date(Date.now() + 60_000));
    const { secret: expired } = await tokens.issue('expired', new Date(Date.now() - 1));
    expect((await ask('GET', 'workers', undefined, secret)).status).toBe(200);
    expect((await ask('GET', 'workers', undefined, expired)).status).toBe(401);
    await app.get(OperatorTokenStore, { strict: false }).revoke(token.prefix);
    expect((await ask('GET', 'workers', undefined, secret)).status).toBe(401);
  });

  it('are no tokens of tenants, and the other way round', async () => {
    await ask('POST', 'tenants', { slug: 'apart' });
    const made = await ask('POST', 'tenants/apart/tokens', { name: 'ci', scopes: ['admin'] });
    expect((await ask('GET', 'tenants', undefined, made.json.secret as string)).status).toBe(401);
    const response = await fetch(`${url}/v1/requests`, { headers: { authorization: `Bearer ${operator}` } });
    expect(response.status).toBe(401);
  });
});

describe('/v1/admin/tenants', () => {
  it('creates, lists, changes, suspends, resumes and deletes', async () => {
    const created = await ask('POST', 'tenants', { slug: 'acme' });
    expect(created).toMatchObject({ status: 201, json: { slug: 'acme', suspended_at: null } });
    expect((await ask('POST', 'tenants', { slug: 'acme' })).status).toBe(409);
    expect((await ask('POST', 'tenants', { slug: 'Not A Slug' })).json.error.fields).toMatchObject([
      { field: 'slug' },
    ]);
    expect((await ask('GET', 'tenants?limit=100')).json.tenants).toContainEqual(created.json);
    expect((await ask('PATCH', 'tenants/acme', { default_agent: 'echo' })).json.default_agent).toBe('echo');
    expect((await ask('PATCH', 'tenants/acme', { default_agent: 'nobody' })).status).toBe(400);
    expect((await ask('PATCH', 'tenants/acme', { index_model: 'gpt' })).json.error.message).toMatch(
      /^index_model: must/,
    );

    const { secret } = (await ask('POST', 'tenants/acme/tokens', { name: 'ci', scopes: [...TENANT_SCOPES] }))
      .json;
    const list = () =>
      fetch(`${url}/v1/requests`, { headers: { authorization: `Bearer ${String(secret)}` } });
    expect((await list()).status).toBe(200);
    const suspended = await ask('POST', 'tenants/acme/suspend', { reason: 'unpaid bill', stop: true });
    expect(suspended.json).toMatchObject({ canceled_tasks: 0, tenant: { suspended_reason: 'unpaid bill' } });
    expect((await list()).status).toBe(403);
    expect((await ask('POST', 'tenants/acme/resume')).json.suspended_at).toBeNull();
    expect((await list()).status).toBe(200);

    expect((await ask('DELETE', 'tenants/acme?confirm=other')).status).toBe(400);
    expect((await ask('DELETE', 'tenants/acme?confirm=acme')).json).toMatchObject({
      ...{ id: created.json.id, slug: 'acme', rows: { api_tokens: 1 } },
    });
    expect((await list()).status).toBe(401);
    for (const path of ['tenants/acme', 'tenants/acme/tokens', 'tenants/acme/limits', 'tenants/acme/usage']) {
      expect([path, (await ask('GET', path)).status]).toEqual([path, 404]);
    }
  });

  it('shows and changes limits, and what is used', async () => {
    await ask('POST', 'tenants', { slug: 'limited' });
    const change = { requestsPerSecond: 10, openStreams: null, retentionDays: 0.5 };
    expect((await ask('PATCH', 'tenants/limited/limits', change)).json.limits).toMatchObject({
      requestsPerSecond: { value: 10, from: 'set' },
      openStreams: { value: null, from: 'set' },
      retentionDays: { value: 0.5, from: 'set' },
      weight: { value: 1, from: 'default' },
    });
    const reset = await ask('PATCH', 'tenants/limited/limits', { requestsPerSecond: 'default' });
    expect(reset.json.limits.requestsPerSecond).toEqual({ value: null, from: 'none' });
    for (const wrong of [
      { weight: null },
      { requestsPerSecond: 0.5 },
      { nothing: 1 },
      { openStreams: '5' },
    ]) {
      expect([wrong, (await ask('PATCH', 'tenants/limited/limits', wrong)).status]).toEqual([wrong, 400]);
    }
    expect((await ask('GET', 'tenants/limited/usage')).json).toEqual({
      ...{
        stored_bytes: null,
        queued_runs: 0,
        running_runs: 0,
        suspended_runs: 0,
        dead_letters: 0,
        days: [],
      },
    });
  });

  it('changes where agents may call, and names the pattern that is none', async () => {
    const { id } = (await ask('POST', 'tenants', { slug: 'fenced' })).json as { id: string };
    const patch = async (body: object) => {
      const { status, json } = await ask('PATCH', 'tenants/fenced', body);
      return status === 200 ? [json.egress_allow, json.egress_deny] : [status, json.error.fields];
    };
    expect(
      await patch({ egress_allow: ['API.example.com.', 'api.example.com', '*.bücher.example:443'] }),
    ).toEqual([['api.example.com', '*.xn--bcher-kva.example:443'], []]);
    expect(await patch({ egress_deny: ['0x7f.1', '10.0.0.0/8'] })).toMatchObject([
      ['api.example.com', '*.xn--bcher-kva.example:443'],
      ['127.0.0.1', '10.0.0.0/8'],
    ]);
    const [record] = await app.get(AuditStore, { strict: false }).list({ tenantId: id, limit: 1 });
    expect(record).toMatchObject({
      ...{ action: 'tenant.update', actor: { kind: 'operator' } },
      detail: { egressDeny: ['127.0.0.1', '10.0.0.0/8'] },
    });
    for (const [body, field] of [
      [{ egress_allow: ['a.example', 'https://b.example'] }, 'egress_allow[1]'],
      [{ egress_deny: Array<string>(201).fill('a.example') }, 'egress_deny'],
      [{ egress_deny: 'a.example' }, 'egress_deny'],
    ] as const) {
      expect(await patch(body)).toMatchObject([400, [{ field }]]);
    }
    expect((await ask('GET', 'tenants/fenced')).json.egress_deny).toEqual(['127.0.0.1', '10.0.0.0/8']);
  });

  it('lists and revokes tokens, and never shows a secret again', async () => {
    await ask('POST', 'tenants', { slug: 'keys' });
    const body = { name: 'ci', scopes: ['agents:call'], expires_at: '2100-01-01T00:00:00Z' };
    const { json } = await ask('POST', 'tenants/keys/tokens', body);
    const { secret, ...token } = json;
    expect(secret).toMatch(/^baton_/);
    expect((await ask('GET', 'tenants/keys/tokens')).json).toEqual({ tokens: [token], next_cursor: null });
    expect((await ask('DELETE', `tenants/keys/tokens/${String(token.id)}`)).json.revoked_at).not.toBeNull();
    const { id } = (await ask('GET', 'tenants/keys')).json as { id: string };
    const records = await app.get(AuditStore, { strict: false }).list({ tenantId: id, limit: 10 });
    const actor = { kind: 'operator', key: expect.stringMatching(/^operator:[-\da-f]{36}$/) as string };
    expect(records).toMatchObject(
      ['token.revoke', 'token.create', 'tenant.create'].map((action) => ({ action, actor })),
    );
    expect((await ask('DELETE', 'tenants/keys/tokens/nothing')).status).toBe(404);
    expect((await ask('POST', 'tenants/keys/tokens', { name: 'x', scopes: ['all'] })).status).toBe(400);
  });

  it('gives tokens agents, a rate and an end, changes and rotates them, and stops what they leave', async () => {
    await ask('POST', 'tenants', { slug: 'rights' });
    const least = await ask('POST', 'tenants/rights/tokens', { name: ' ci ' });
    expect([least.status, least.json]).toMatchObject([
      201,
      { name: 'ci', scopes: ['agents:call'], agents: null, requests_per_second: null, expires_at: null },
    ]);
    const rights = {
      ...{ name: 'desk', scopes: ['tasks:read', 'admin'], agents: ['echo'], requests_per_second: 7 },
      expires_at: '2100-01-01T00:00:00.000Z',
    };
    const { secret, ...token } = (await ask('POST', 'tenants/rights/tokens', rights)).json;
    expect(token).toMatchObject({ ...rights, state: 'active' });
    const path = `tenants/rights/tokens/${token.id as string}`;
    const none = { tasks: [], more_tasks: false, schedules: [] };
    expect((await ask('GET', path)).json).toEqual({ ...token, running: none });
    expect((await ask('GET', `tenants/rights/tokens/${token.prefix as string}`)).json.id).toBe(token.id);
    const first = await ask('GET', 'tenants/rights/tokens?limit=1');
    expect(first.json.tokens).toEqual([token]);
    const next = await ask('GET', `tenants/rights/tokens?limit=1&cursor=${first.json.next_cursor as string}`);
    expect(next.json).toMatchObject({ tokens: [{ id: least.json.id as string }], next_cursor: null });
    const call = (with_: unknown) =>
      fetch(`${url}/v1/requests`, { headers: { authorization: `Bearer ${String(with_)}` } });
    expect((await call(secret)).status).toBe(200);
    const change = { scopes: ['agents:write'], agents: null, requests_per_second: null, expires_at: null };
    expect((await ask('PATCH', path, change)).json).toMatchObject({ ...change, name: 'desk' });
    expect((await call(secret)).status).toBe(403);
    const rotated = await ask('POST', `${path}/rotate`, { overlap_seconds: 0 });
    expect(rotated).toMatchObject({ status: 200, json: { id: token.id as string } });
    expect([(await call(secret)).status, (await call(rotated.json.secret)).status]).toEqual([401, 403]);
    expect((await ask('DELETE', `${path}?stop=true`)).json).toMatchObject({
      ...{ state: 'revoked', running: none, canceled_tasks: 0, paused_schedules: 0 },
    });
    expect((await ask('PATCH', path, { name: 'late' })).status).toBe(409);
    expect((await ask('POST', `${path}/rotate`, {})).status).toBe(409);
    for (const [wrong, field] of [
      [{ name: '' }, 'name'],
      [{ name: 'x', agents: ['De/sk'] }, 'agents[0]'],
      [{ name: 'x', requests_per_second: 0 }, 'requests_per_second'],
      [{ name: 'x', expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    ] as const) {
      const { status, json } = await ask('POST', 'tenants/rights/tokens', wrong);
      expect([status, json.error.fields[0].field]).toEqual([400, field]);
    }
    await ask('POST', 'tenants', { slug: 'strange' });
    for (const [method, of] of [
      ...([
        ['GET', ''],
        ['PATCH', ''],
        ['DELETE', ''],
      ] as const),
      ['POST', '/rotate'] as const,
    ]) {
      const other = `tenants/strange/tokens/${least.json.id as string}${of}`;
      expect((await ask(method, other, method === 'GET' ? undefined : {})).status).toBe(404);
    }
  });

  it('exports a tenant as a stream, and imports it', async () => {
    await ask('POST', 'tenants', { slug: 'source' });
    const headers = { authorization: `Bearer ${operator}` };
    const exported = await fetch(`${managementUrl}/v1/admin/tenants/source/export`, { headers });
    expect(exported.headers.get('content-type')).toBe('application/x-ndjson');
    const file = await exported.text();
    const put = (slug: string, type: string, body: string) =>
      fetch(`${managementUrl}/v1/admin/tenants/${slug}/import`, {
        ...{ method: 'POST', headers: { ...headers, 'content-type': type }, body },
      });
    const imported = await put('target', 'application/x-ndjson', file);
    expect([imported.status, await imported.json()]).toMatchObject([201, { slug: 'target', secrets: [] }]);
    expect((await put('target', 'application/x-ndjson', file)).status).toBe(409);
    expect((await put('half', 'application/x-ndjson', file.split('\n')[0]!)).status).toBe(409);
    expect((await put('json', 'application/json', file)).status).toBe(415);
    expect((await ask('GET', 'tenants/half')).status).toBe(404);
  });
});

describe('hosts, workers and dead letters', () => {
  it('are bound, listed and unbound', async () => {
    await ask('POST', 'tenants', { slug: 'host-a' });
    await ask('POST', 'tenants', { slug: 'host-b' });
    const binding = { tenant: 'host-a', agent: 'echo', public: true };
    const { id: tenantId } = (await ask('GET', 'tenants/host-a')).json as { id: string };
    const bound = { host: 'agents.example.com', tenant_id: tenantId, ...binding };
    expect(await ask('PUT', 'hosts/Agents.example.com', binding)).toEqual({ status: 200, json: bound });
    expect((await ask('GET', 'hosts')).json).toEqual({ hosts: [bound] });
    expect((await ask('GET', 'hosts?tenant=host-a')).json).toEqual({ hosts: [bound] });
    expect((await ask('GET', 'hosts?tenant=host-b')).json).toEqual({ hosts: [] });
    expect((await ask('GET', 'hosts?tenant=nobody')).status).toBe(404);
    expect((await ask('PUT', 'hosts/agents.example.com', { ...binding, tenant: 'host-b' })).status).toBe(409);
    expect((await ask('PUT', 'hosts/agents.example.com', { ...binding, agent: 'nobody' })).status).toBe(400);
    for (const wrong of ['a%20b', 'https%3A%2F%2Fa.example', 'x%2541.com', 'a'.repeat(254)]) {
      expect([wrong, (await ask('PUT', `hosts/${wrong}`, binding)).status]).toEqual([wrong, 400]);
      expect([wrong, (await ask('DELETE', `hosts/${wrong}`)).status]).toEqual([wrong, 400]);
    }
    const { tenant: _, ...unbound } = bound;
    expect(await ask('DELETE', 'hosts/agents.example.com:443')).toEqual({ status: 200, json: unbound });
    expect((await ask('DELETE', 'hosts/agents.example.com')).status).toBe(404);
    const named = await ask('PUT', 'hosts/B%C3%BCcher.example', binding);
    expect(named.json).toEqual({ ...bound, host: 'xn--bcher-kva.example' });
    expect((await ask('DELETE', 'hosts/b%C3%BCcher.example')).json.host).toBe('xn--bcher-kva.example');
    expect((await ask('GET', 'workers')).json).toEqual({ workers: [] });
    expect((await ask('GET', 'dead-letters')).json).toEqual({ dead_letters: [] });
    expect((await ask('GET', 'dead-letters?tenant=host-a')).json).toEqual({ dead_letters: [] });
    expect((await ask('GET', 'dead-letters?tenant=nobody')).status).toBe(404);
    for (const run of [randomUUID(), 'nothing']) {
      expect((await ask('GET', `dead-letters/${run}`)).status).toBe(404);
      expect((await ask('POST', `dead-letters/${run}/redeliver`)).status).toBe(404);
    }
  });
});

describe('npx baton with --url needs no database', () => {
  /** What an operator without DATABASE_URL sees. */
  async function baton(...args: string[]) {
    const { run } = await import('../../../cli/src/program.js');
    const [out, err]: [string[], string[]] = [[], []];
    const terminal = {
      out: (text: string) => void out.push(text),
      err: (text: string) => void err.push(text),
    };
    const home = mkdtempSync(join(tmpdir(), 'baton-remote-'));
    const source = { BATON_HOME: home, BATON_ADMIN_URL: managementUrl, BATON_OPERATOR_TOKEN: operator };
    const code = await run(args, { source, terminal, stdin: () => Readable.from([]) });
    return { code, out: out.join('\n'), err: err.join('\n') };
  }
  const must = async (...args: string[]): Promise<Json> => {
    const { code, out, err } = await baton(...args, '--json');
    expect([code, err]).toEqual([0, '']);
    return JSON.parse(out) as Json;
  };
  const refusal = async (...args: string[]): Promise<string> => {
    const { code, err } = await baton(...args);
    expect(code).toBe(1);
    return err;
  };

  it('for hosts', async () => {
    const { id: tenantId } = await must('tenants', 'create', 'remote-hosts');
    const bind = ['hosts', 'bind', '--tenant', 'remote-hosts', '--agent'];
    const bound = { host: 'xn--bcher-kva.example', tenantId, tenant: 'remote-hosts', agent: 'echo' };
    expect(await must(...bind, 'echo', 'Bücher.example:443')).toEqual({ ...bound, public: false });
    expect(await must('hosts', 'list', '--tenant', 'remote-hosts')).toEqual([{ ...bound, public: false }]);
    expect((await baton('hosts', 'list')).out).toMatch(/\nxn--bcher-kva\.example +remote-hosts +echo/);
    expect(await refusal(...bind, 'nobody', 'x.example')).toMatch(
      /^Tenant "remote-hosts" has no agent "nobody"/,
    );
    expect(await refusal(...bind, 'echo', 'https://x.example')).toMatch(
      /^"https:\/\/x\.example" cannot be a host: give the name alone/,
    );
    expect(await refusal('hosts', 'list', '--tenant', 'nobody')).toMatch(/^There is no tenant "nobody"/);
    await must('tenants', 'create', 'remote-squatter');
    expect(
      await refusal('hosts', 'bind', 'bücher.example', '--tenant', 'remote-squatter', '--agent', 'echo'),
    ).toMatch(/is bound to another tenant: npx baton hosts unbind/);
    expect(await must('hosts', 'unbind', 'bücher.example')).toMatchObject({ host: bound.host, tenantId });
    expect(await refusal('hosts', 'unbind', 'bücher.example')).toMatch(/is not bound: npx baton hosts list/);
  });

  it('for workers', async () => {
    expect((await baton('workers')).err).toBe('No worker has given a sign of life in the last hour.');
    const worker = { id: randomUUID(), host: 'w-1', pid: 7, concurrency: 4 };
    await app.get(WorkerStore, { strict: false }).seen(worker);
    const time = expect.stringMatching(/^\d{4}-.*Z$/) as string;
    expect(await must('workers')).toEqual([{ ...worker, running: 0, startedAt: time, seenAt: time }]);
    expect((await baton('workers')).out).toMatch(/\nw-1 +7 +0 +4 /);
    await app.get(WorkerStore, { strict: false }).remove(worker.id);
  });

  it('for dead letters', async () => {
    const { id: tenantId } = await must('tenants', 'create', 'remote-dead');
    const tokens = app.get(TokenService, { strict: false });
    const caller = { tenantId: tenantId as string, name: 'caller', scopes: [...TENANT_SCOPES] };
    const { secret } = await tokens.issue({ ...caller, expiresAt: null });
    const sent = await fetch(`${url}/agents/echo`, {
      ...{
        method: 'POST',
        headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      },
      body: JSON.stringify({
        ...{ jsonrpc: '2.0', id: 1, method: 'SendMessage' },
        params: {
          message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'a bitter pill' }] },
          configuration: { returnImmediately: true },
        },
      }),
    });
    const taskId = ((await sent.json()) as Json).result.task.id as string;
    const error = {
      attempt: 3,
      at: '2026-11-22T08:00:00.000Z',
      name: 'TypeError',
      message: 'x',
      stack: 'at y',
    };
    const sql = (text: string) => app.get(Database, { strict: false }).systemQuery({ text }, []);
    const [row] = await sql(
      `UPDATE runs SET error_detail = '${JSON.stringify(error)}' WHERE task_id = '${taskId}' RETURNING id::text AS id`,
    );
    const runId = row!.id as string;
    await sql(
      `INSERT INTO dead_letters (tenant_id, run_id, task_id, agent_id, reason, attempts)
       VALUES ('${tenantId as string}', '${runId}', '${taskId}', 'echo', 'died', 3)`,
    );
    const letter = {
      runId,
      taskId,
      tenantId,
      tenant: 'remote-dead',
      agentId: 'echo',
      attempts: 3,
      reason: 'died',
    };
    expect(await must('dead-letters', 'list')).toMatchObject([{ ...letter, redeliveredAt: null }]);
    expect(await must('dead-letters', 'show', runId)).toMatchObject({
      ...{ ...letter, message: { parts: [{ content: { $case: 'text', value: 'a bitter pill' } }] } },
      error: { ...error, runId, output: [] },
    });
    expect((await baton('dead-letters', 'show', runId)).out).toMatch(/\nmessage +a bitter pill\n[^]*\nat y$/);
    const [made] = (await must('dead-letters', 'redeliver', '--all', '--tenant', 'remote-dead')) as Json[];
    expect(made).toEqual({ runId, taskId: expect.not.stringMatching(taskId) as string });
    expect(await must('dead-letters', 'list', '--tenant', 'remote-dead')).toMatchObject([
      { redeliveredAt: expect.any(String) as string, redeliveredTaskId: made!.taskId as string },
    ]);
    expect(await refusal('dead-letters', 'redeliver', runId)).toBe(
      `Run ${runId} was redelivered before, as task ${made!.taskId as string}: add --again to redeliver it once more.`,
    );
    expect(await must('dead-letters', 'redeliver', runId, '--again')).toHaveLength(1);
    const all = ['dead-letters', 'redeliver', '--all', '--tenant', 'remote-dead'];
    expect((await baton(...all)).err).toBe('There is nothing to redeliver.');
    expect(await refusal('dead-letters', 'show', randomUUID())).toMatch(/^There is no dead letter of run "/);
    expect(await refusal('dead-letters', 'list', '--tenant', 'nobody')).toMatch(
      /^There is no tenant "nobody"/,
    );
  });

  it('for tokens', async () => {
    await must('tenants', 'create', 'remote-tokens');
    const tokens = async (verb: string, ...args: string[]) =>
      must('tokens', verb, '--tenant', 'remote-tokens', ...args);
    const given = ['--name', 'desk', '--scopes', 'agents:call,tasks:read', '--agents', 'echo'];
    const { token, ...made } = await tokens(
      'create',
      ...given,
      '--requests-per-second',
      '7',
      '--expires',
      '30d',
    );
    expect(token).toMatch(/^baton_/);
    expect(made).toMatchObject({
      ...{ tenant: 'remote-tokens', name: 'desk', scopes: ['agents:call', 'tasks:read'], agents: ['echo'] },
      ...{ requestsPerSecond: 7, state: 'active' },
    });
    const { tenant: _, ...shown } = made;
    expect(await tokens('list')).toEqual([shown]);
    const running = { tasks: [], hasMore: false, schedules: [] };
    expect(await tokens('show', made.prefix as string)).toEqual({ ...shown, running });
    const rotated = await tokens('rotate', made.id as string, '--overlap', '12h');
    expect(rotated).toMatchObject({ id: made.id as string, previousPrefix: made.prefix as string });
    expect(await tokens('revoke', made.id as string, '--stop')).toMatchObject({
      ...{ state: 'revoked', running, canceledTasks: 0, pausedSchedules: 0 },
    });
    expect(await refusal('tokens', 'list', '--tenant', 'nobody')).toMatch(/^There is no tenant "nobody"/);
    expect(await refusal('tokens', 'show', '--tenant', 'remote-tokens', 'baton_none')).toBe(
      'There is no such token: npx baton tokens list --tenant remote-tokens shows ids and prefixes.',
    );
    expect(await refusal('tokens', 'list', '--tenant', 'remote-tokens', '--token', 'baton_wrong')).toMatch(
      /refuses the token/,
    );
  });

  it('for tenants', async () => {
    const json = (...args: string[]) => must('tenants', ...args);
    const made = await json('create', 'remote');
    expect(made).toMatchObject({ slug: 'remote', defaultAgent: 'index', suspendedAt: null });
    expect(await json('list')).toContainEqual(made);
    expect(await json('set', 'remote', '--default-agent', 'echo')).toMatchObject({ defaultAgent: 'echo' });
    expect(await json('limits', 'remote', '--open-streams', '5')).toMatchObject({
      openStreams: { value: 5, from: 'set' },
    });
    expect(await json('limits', 'remote', '--default', 'open-streams')).toMatchObject({
      openStreams: { value: null, from: 'none' },
    });
    const lists = { allow: ['*.example.com', '10.0.0.0/8'], deny: [] };
    expect(await json('egress', 'remote', '--allow', '*.Example.com,10.0.0.0/8')).toEqual(lists);
    expect(await json('egress', 'remote')).toEqual(lists);
    expect(await json('usage', 'remote')).toMatchObject({ queuedRuns: 0, days: [] });
    expect(await json('suspend', 'remote', '--reason', 'unpaid')).toMatchObject({ canceledTasks: 0 });
    expect(await json('resume', 'remote')).toMatchObject({ suspendedAt: null });
    const file = join(mkdtempSync(join(tmpdir(), 'baton-remote-')), 'remote.ndjson');
    expect((await baton('tenants', 'export', 'remote', file)).code).toBe(0);
    expect(readFileSync(file, 'utf8')).toMatch(/^\{"kind":"baton-tenant".*\n(.*\n)*\{"kind":"end".*\n$/);
    expect((await baton('tenants', 'import', 'remote-copy', file)).out).toMatch(/^Tenant remote-copy \(/);
    const deleted = await baton('tenants', 'delete', 'remote-copy', '--yes', '--json');
    expect(JSON.parse(deleted.out)).toMatchObject({ slug: 'remote-copy', rows: { audit_records: 1 } });
    const gone = await baton('tenants', 'resume', 'remote-copy');
    expect(gone).toMatchObject({
      code: 1,
      err: expect.stringContaining('404: There is no tenant "remote-copy"'),
    });
    const refused = await baton('tenants', 'list', '--token', 'baton_operator_wrong');
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('refuses the token') });
  });
});
