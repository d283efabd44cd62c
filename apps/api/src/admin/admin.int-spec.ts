import { TENANT_SCOPES } from '@baton/a2a';
import { AuditStore, Database, OperatorTokenStore, PLATFORM_ACTOR } from '@baton/database';
import { OperatorTokens } from '@baton/identity';
import { type ControlMessage, createMessaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { KEEPS_CONNECTIONS } from '../../../../test/support/server-options.js';
import { app, ask, database, type Json, managementUrl, operator, url } from './admin-api.fixture.js';

describe('tokens of operators', () => {
  it('count at once when they are revoked or expired', async () => {
    const tokens = app.get(OperatorTokens, { strict: false });
    const { secret, token } = await tokens.issue('other', new Date(Date.now() + 60_000));
    const { secret: expired } = await tokens.issue('expired', new Date(Date.now() - 1));
    expect((await ask('GET', 'workers', undefined, secret)).status).toBe(200);
    expect((await ask('GET', 'workers', undefined, expired)).status).toBe(401);
    await app.get(OperatorTokenStore, { strict: false }).revoke(token.prefix, PLATFORM_ACTOR);
    expect((await ask('GET', 'workers', undefined, secret)).status).toBe(401);
  });

  it('are no tokens of tenants, and the other way round', async () => {
    await ask('POST', 'tenants', { slug: 'apart' });
    const made = await ask('POST', 'tenants/apart/tokens', { name: 'ci', scopes: ['admin'] });
    expect((await ask('GET', 'tenants', undefined, made.json.secret as string)).status).toBe(401);
    const response = await fetch(`${url}/v1/tasks`, { headers: { authorization: `Bearer ${operator}` } });
    expect(response.status).toBe(401);
  });
});

/** What a token may do besides one with the role `full`. Every route of operators stands here. */
const MAY: Record<string, 'read' | 'support' | 'both' | 'full'> = {
  'GET /v1/admin/whoami': 'both',
  'GET /v1/admin/queue': 'both',
  'GET /v1/admin/usage': 'both',
  'GET /v1/admin/workers': 'both',
  'GET /v1/admin/dead-letters': 'read',
  'GET /v1/admin/dead-letters/{runId}': 'read',
  'POST /v1/admin/dead-letters/{runId}/redeliver': 'support',
  'GET /v1/admin/dead-pushes': 'both',
  'POST /v1/admin/dead-pushes/{id}/redeliver': 'support',
  'GET /v1/admin/audit': 'both',
  'GET /v1/admin/audit/export': 'both',
  'GET /v1/admin/hosts': 'both',
  'PUT /v1/admin/hosts/{host}': 'full',
  'DELETE /v1/admin/hosts/{host}': 'full',
  'GET /v1/admin/tenants/{tenant}/spending-caps': 'both',
  'PUT /v1/admin/tenants/{tenant}/spending-caps/{period}': 'full',
  'DELETE /v1/admin/tenants/{tenant}/spending-caps/{period}': 'full',
  'GET /v1/admin/issuers': 'both',
  'GET /v1/admin/tenants/{tenant}/issuers': 'both',
  'POST /v1/admin/tenants/{tenant}/issuers': 'full',
  'DELETE /v1/admin/tenants/{tenant}/issuers/{id}': 'full',
  'GET /v1/admin/operator-tokens': 'both',
  'DELETE /v1/admin/operator-tokens/{token}': 'full',
  'GET /v1/admin/tenants': 'both',
  'POST /v1/admin/tenants': 'full',
  'GET /v1/admin/tenants/{tenant}': 'both',
  'PATCH /v1/admin/tenants/{tenant}': 'full',
  'DELETE /v1/admin/tenants/{tenant}': 'full',
  'POST /v1/admin/tenants/{tenant}/suspend': 'support',
  'POST /v1/admin/tenants/{tenant}/resume': 'support',
  'GET /v1/admin/tenants/{tenant}/limits': 'both',
  'PATCH /v1/admin/tenants/{tenant}/limits': 'full',
  'GET /v1/admin/tenants/{tenant}/usage': 'both',
  'GET /v1/admin/tenants/{tenant}/export': 'read',
  'POST /v1/admin/tenants/{tenant}/import': 'full',
  'GET /v1/admin/tenants/{tenant}/agents': 'read',
  'POST /v1/admin/tenants/{tenant}/agents': 'full',
  'DELETE /v1/admin/tenants/{tenant}/agents/{agent}': 'full',
  'GET /v1/admin/tenants/{tenant}/secrets': 'both',
  'PUT /v1/admin/tenants/{tenant}/secrets/{name}': 'full',
  'PATCH /v1/admin/tenants/{tenant}/secrets/{name}': 'full',
  'DELETE /v1/admin/tenants/{tenant}/secrets/{name}': 'full',
  'GET /v1/admin/tenants/{tenant}/tokens': 'both',
  'POST /v1/admin/tenants/{tenant}/tokens': 'full',
  'GET /v1/admin/tenants/{tenant}/tokens/{token}': 'both',
  'PATCH /v1/admin/tenants/{tenant}/tokens/{token}': 'full',
  'POST /v1/admin/tenants/{tenant}/tokens/{token}/rotate': 'full',
  'DELETE /v1/admin/tenants/{tenant}/tokens/{token}': 'full',
  'GET /v1/admin/tenants/{tenant}/tasks/{id}': 'read',
  'GET /v1/admin/tasks/{id}': 'read',
};

describe('the role of a token', () => {
  it.each(['read', 'support'] as const)('%s opens the routes that name it, and no other', async (role) => {
    const { secret } = await app.get(OperatorTokens, { strict: false }).issue(role, null, role);
    const { json } = await ask('GET', 'openapi.json');
    const paths = json.paths as Record<string, Record<string, { security: unknown[] }>>;
    const opened: string[] = [];
    const routes = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, { security }]) => security.length > 0)
        .map(([method]) => ({ method: method.toUpperCase(), path })),
    );
    for (const { method, path } of routes) {
      const below = path.slice('/v1/admin/'.length).replaceAll(/\{\w+\}/g, randomUUID());
      const body = ['GET', 'DELETE'].includes(method) ? undefined : {};
      const { status, json: answer } = await ask(method, below, body, secret);
      if (status !== 403) opened.push(`${method} ${path}`);
      else expect(answer.error.message).toContain(`has the role "${role}"`);
    }
    expect(routes.map(({ method, path }) => `${method} ${path}`).sort()).toEqual(Object.keys(MAY).sort());
    const named = Object.entries(MAY).flatMap(([route, may]) =>
      may === role || may === 'both' ? [route] : [],
    );
    expect(opened.sort()).toEqual(named.sort());
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
    expect((await ask('GET', 'tenants?limit=100')).json.tenants).toContainEqual({
      ...created.json,
      stored_bytes: null,
    });
    expect((await ask('PATCH', 'tenants/acme', { default_agent: 'echo' })).json.default_agent).toBe('echo');
    expect((await ask('PATCH', 'tenants/acme', { default_agent: 'nobody' })).status).toBe(400);
    expect((await ask('PATCH', 'tenants/acme', { index_model: 'gpt' })).json.error.message).toMatch(
      /^index_model: must/,
    );

    const { secret } = (await ask('POST', 'tenants/acme/tokens', { name: 'ci', scopes: [...TENANT_SCOPES] }))
      .json;
    const list = () => fetch(`${url}/v1/tasks`, { headers: { authorization: `Bearer ${String(secret)}` } });
    expect((await list()).status).toBe(200);
    const suspended = await ask('POST', 'tenants/acme/suspend', { reason: 'unpaid bill', stop: true });
    expect(suspended.json).toMatchObject({ canceled_tasks: 0, tenant: { suspended_reason: 'unpaid bill' } });
    expect((await list()).status).toBe(403);
    expect((await ask('POST', 'tenants/acme/resume')).json.suspended_at).toBeNull();
    expect((await list()).status).toBe(200);

    expect((await ask('DELETE', 'tenants/acme?confirm=other')).status).toBe(400);
    expect((await ask('DELETE', 'tenants/acme?confirm=acme')).json).toMatchObject({
      id: created.json.id,
      slug: 'acme',
      rows: { api_tokens: 1 },
    });
    expect((await list()).status).toBe(401);
    for (const path of ['tenants/acme', 'tenants/acme/tokens', 'tenants/acme/limits', 'tenants/acme/usage']) {
      expect([path, (await ask('GET', path)).status]).toEqual([path, 404]);
    }
  });

  it('shows which of them take slots, bytes, tokens and money, sorted, in pages and as CSV', async () => {
    const stored = app.get(Database, { strict: false });
    const rows: Json[] = [];
    for (const [i, slug] of ['use-a', 'use-b', 'use-c'].entries()) {
      const { json } = await ask('POST', 'tenants', { slug });
      const text = `INSERT INTO usage_hours (tenant_id, hour, agent_id, owner, model, calls, input_tokens, output_tokens)
        VALUES ($1, date_trunc('hour', now()), '', '', 'x/m', 1, $2, 1)`;
      if (i < 2) await stored.systemQuery({ text }, [json.id, [5, 50][i]]);
    }
    const ours = (json: Json): Json[] =>
      (json.tenants as Json[]).filter(({ tenant }) => String(tenant).startsWith('use-'));
    const sorted = async (query: string) =>
      ours((await ask('GET', `usage?limit=100&${query}`)).json).map(({ tenant }) => tenant as string);
    expect(await sorted('sort=input_tokens')).toEqual(['use-b', 'use-a', 'use-c']);
    expect(await sorted('sort=tenant')).toEqual(['use-a', 'use-b', 'use-c']);
    expect(await sorted('sort=input_tokens&until=2026-01-02T00:00:00Z&since=2026-01-01T00:00:00Z')).toEqual([
      'use-a',
      'use-b',
      'use-c',
    ]);
    let cursor = '';
    do {
      const { json } = await ask('GET', `usage?limit=1&sort=input_tokens&cursor=${cursor}`);
      rows.push(...ours(json));
      cursor = (json.next_cursor as string | null) ?? '';
    } while (cursor !== '');
    expect(rows.map(({ tenant }) => tenant as string)).toEqual(['use-b', 'use-a', 'use-c']);
    expect(rows[0]).toEqual({
      tenant: 'use-b',
      runs_in_flight: 0,
      waiting_runs: 0,
      stored_bytes: null,
      tasks: 0,
      failed: 0,
      seconds: 0,
      calls: 1,
      input_tokens: 50,
      output_tokens: 1,
      cost: null,
      unpriced_tokens: 51,
    });
    const headers = { authorization: `Bearer ${operator}`, accept: 'text/csv' };
    const csv = await fetch(`${managementUrl}/v1/admin/usage?sort=input_tokens&limit=1`, { headers });
    expect(csv.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    const lines = (await csv.text()).trim().split('\r\n');
    expect(lines[0]).toMatch(/^tenant,runs_in_flight,waiting_runs,stored_bytes,tasks,/);
    expect(lines.filter((line) => line.startsWith('use-'))).toEqual([
      'use-b,0,0,,0,0,0,1,50,1,,51',
      'use-a,0,0,,0,0,0,1,5,1,,6',
      'use-c,0,0,,0,0,0,0,0,0,,0',
    ]);
    expect((await ask('GET', 'usage?sort=colour')).status).toBe(400);
    expect((await ask('GET', `usage?cursor=${Buffer.from('gone').toString('base64url')}`)).status).toBe(400);
    for (const { tenant } of rows) await ask('DELETE', `tenants/${tenant}?confirm=${tenant}`);
  });

  it('shows a task under the path of tasks, and under that of release 0.2.0', async () => {
    await ask('POST', 'tenants', { slug: 'asked' });
    for (const name of ['tasks', 'requests']) {
      const { status, json } = await ask('GET', `tenants/asked/${name}/${randomUUID()}`);
      expect([name, status, json.error.message]).toEqual([
        name,
        404,
        'The tenant has no such task, or it is past its retention',
      ]);
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
    expect(reset.json.limits.requestsPerSecond).toEqual({ value: 200, from: 'default' });
    for (const wrong of [
      { weight: null },
      { requestsPerSecond: 0.5 },
      { nothing: 1 },
      { openStreams: '5' },
    ]) {
      expect([wrong, (await ask('PATCH', 'tenants/limited/limits', wrong)).status]).toEqual([wrong, 400]);
    }
    expect((await ask('GET', 'tenants/limited/usage')).json).toEqual({
      stored_bytes: null,
      queued_runs: 0,
      running_runs: 0,
      suspended_runs: 0,
      dead_letters: 0,
      days: [],
    });
  });

  it('changes where agents may call, and names an invalid pattern', async () => {
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
      action: 'tenant.update',
      actor: { kind: 'operator' },
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
      name: 'desk',
      scopes: ['tasks:read', 'admin'],
      agents: ['echo'],
      requests_per_second: 7,
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
      fetch(`${url}/v1/tasks`, { headers: { authorization: `Bearer ${String(with_)}` } });
    expect((await call(secret)).status).toBe(200);
    const change = { scopes: ['agents:write'], agents: null, requests_per_second: null, expires_at: null };
    expect((await ask('PATCH', path, change)).json).toMatchObject({ ...change, name: 'desk' });
    expect((await call(secret)).status).toBe(403);
    const rotated = await ask('POST', `${path}/rotate`, { overlap_seconds: 0 });
    expect(rotated).toMatchObject({ status: 200, json: { id: token.id as string } });
    expect([(await call(secret)).status, (await call(rotated.json.secret)).status]).toEqual([401, 403]);
    expect((await ask('DELETE', `${path}?stop=true`)).json).toMatchObject({
      state: 'revoked',
      running: none,
      canceled_tasks: 0,
      paused_schedules: 0,
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
        method: 'POST',
        headers: { ...headers, 'content-type': type },
        body,
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
    const { json: queue } = await ask('GET', 'queue');
    expect(queue).toMatchObject({ slots: 0, dead_letters: 0, dead_pushes: 0, jobs: { active: 0 } });
    expect(queue.classes.map((each: { class: string }) => each.class)).toEqual([
      'waiting',
      'backoff',
      'queued',
      'running',
      'suspended',
    ]);
    const none = { dead_letters: [], next_cursor: null };
    expect((await ask('GET', 'dead-letters')).json).toEqual(none);
    expect((await ask('GET', 'dead-letters?tenant=host-a')).json).toEqual(none);
    expect((await ask('GET', 'dead-letters?tenant=nobody')).status).toBe(404);
    for (const run of [randomUUID(), 'nothing']) {
      expect((await ask('GET', `dead-letters/${run}`)).status).toBe(404);
      expect((await ask('POST', `dead-letters/${run}/redeliver`)).status).toBe(404);
    }
  });
});

describe('issuers', () => {
  const UNSEEN = { audience: 'baton', check: false };

  it('are trusted, listed and removed', async () => {
    await ask('POST', 'tenants', { slug: 'trusting' });
    await ask('POST', 'tenants', { slug: 'other-trusting' });
    const { id: tenant_id } = (await ask('GET', 'tenants/trusting')).json as { id: string };
    const path = 'tenants/trusting/issuers';
    const least = await ask('POST', path, { issuer: 'https://id.example.com', ...UNSEEN });
    expect(least).toEqual({
      status: 201,
      json: {
        id: expect.any(String) as string,
        tenant: 'trusting',
        tenant_id,
        created_at: expect.any(String),
        issuer: 'https://id.example.com',
        audience: 'baton',
        selector: null,
        jwks_url: null,
        subject_claim: 'sub',
        scopes: ['agents:call'],
        grants: [],
        agents: null,
        requests_per_second: null,
      },
    });
    const rights = {
      issuer: 'https://more.example.com',
      selector: { claim: 'org', value: 'o1' },
      subject_claim: 'oid',
      jwks_url: 'https://more.example.com/keys',
      scopes: [],
      agents: ['echo'],
      requests_per_second: 7,
      grants: [{ claim: 'groups', value: 'heads', scopes: ['admin'] }],
    };
    const more = await ask('POST', path, { ...rights, ...UNSEEN });
    expect(more.json).toMatchObject(rights);
    expect((await ask('GET', path)).json).toEqual({ issuers: [least.json, more.json] });
    expect((await ask('GET', 'tenants/other-trusting/issuers')).json).toEqual({ issuers: [] });
    expect((await ask('GET', 'issuers')).json).toEqual({ issuers: [least.json, more.json] });
    const id = least.json.id as string;
    expect((await ask('DELETE', `tenants/other-trusting/issuers/${id}`)).status).toBe(404);
    expect(await ask('DELETE', `${path}/${id}`)).toEqual({ status: 200, json: least.json });
    expect((await ask('DELETE', `${path}/${id}`)).status).toBe(404);
    expect((await ask('DELETE', `${path}/nothing`)).status).toBe(404);
    expect((await ask('GET', 'tenants/nobody/issuers')).status).toBe(404);
    expect(
      (await ask('POST', 'tenants/nobody/issuers', { issuer: 'https://x.example', ...UNSEEN })).status,
    ).toBe(404);
  });

  it('are refused if a token could select two tenants', async () => {
    const shared = { issuer: 'https://shared.example.com', ...UNSEEN };
    const { id } = (await ask('POST', 'tenants/trusting/issuers', shared)).json as { id: string };
    const { status, json } = await ask('POST', 'tenants/other-trusting/issuers', shared);
    expect([status, json.error.message]).toEqual([
      409,
      expect.stringContaining(`or remove the entry ${id} of the tenant trusting`),
    ]);
  });

  it.each<[object, string]>([
    [{ issuer: 'id.example.com' }, 'issuer'],
    [{ issuer: 'http://id.example.com' }, 'issuer'],
    [{ issuer: 'https://me:secret@id.example.com' }, 'issuer'],
    [{ issuer: `https://id.example.com/${'a'.repeat(2_000)}` }, 'issuer'],
    [{ audience: '' }, 'audience'],
    [{ audience: 'a'.repeat(256) }, 'audience'],
    [{ audience: 'a\0' }, 'audience'],
    [{ selector: { claim: 'org' } }, 'selector.value'],
    [{ jwks_url: 'http://x.example.com' }, 'jwks_url'],
    [{ scopes: ['everything'] }, 'scopes[0]'],
    [{ grants: [{ claim: 'g', value: 'v', scopes: [] }] }, 'grants[0].scopes'],
    [
      { grants: Array.from({ length: 101 }, () => ({ claim: 'g', value: 'v', scopes: ['admin'] })) },
      'grants',
    ],
    [{ agents: ['De/sk'] }, 'agents[0]'],
    [{ requests_per_second: 0 }, 'requests_per_second'],
    [{ nothing: 1 }, 'nothing'],
  ])('are refused for %j, and the field is named', async (wrong, field) => {
    const body = { issuer: 'https://wrong.example.com', ...UNSEEN, ...wrong };
    const { status, json } = await ask('POST', 'tenants/trusting/issuers', body);
    expect([status, json.error.fields[0].field]).toEqual([400, field]);
  });

  it('have their keys read first, by the guard of all outbound calls', async () => {
    let keys: object[] = [];
    const server = createServer(
      KEEPS_CONNECTIONS,
      (_, response) => void response.end(JSON.stringify({ keys })),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const body = { issuer: origin, audience: 'baton', jwks_url: `${origin}/keys`, allow_http: true };
    const add = (of: object) => ask('POST', 'tenants/trusting/issuers', of);
    expect((await add(body)).json.error.message).toBe(
      `issuer: The keys of ${origin} cannot be read: it has no keys. Correct the URL, or add it unseen with "check": false`,
    );
    expect((await add({ ...body, jwks_url: 'http://10.0.0.1/keys' })).json.error.message).toMatch(
      /cannot be read: .*not at a public address/,
    );
    keys = [{ kty: 'EC', kid: 'k1' }];
    expect((await add(body)).status).toBe(201);
    await new Promise((resolve) => server.close(resolve));
  });

  it('are refused where the tenant may not call, also unseen', async () => {
    await ask('POST', 'tenants', { slug: 'fenced-trust' });
    await ask('PATCH', 'tenants/fenced-trust', {
      egress_deny: ['id.example.com'],
      egress_allow: ['*.example.com'],
    });
    const message = async (of: object): Promise<string> =>
      (await ask('POST', 'tenants/fenced-trust/issuers', { ...UNSEEN, ...of })).json.error.message as string;
    expect(await message({ issuer: 'https://id.example.com' })).toMatch(
      /^issuer: "id\.example\.com" is in the list .*\(egress_deny\)/,
    );
    const elsewhere = { issuer: 'https://a.example.com', jwks_url: 'https://192.0.2.1/jwks' };
    expect(await message(elsewhere)).toMatch(/^jwks_url: "192\.0\.2\.1" is not in the list/);
  });
});

describe('every process gets a control message', () => {
  it('of each change of a tenant, its tokens, agents, hosts and issuers', async () => {
    const messages: ControlMessage[] = [];
    let news = (): void => undefined;
    const messaging = createMessaging({ databaseUrl: database.url, log: Logger.silent() });
    await messaging.start(10_000);
    const { id: tenantId } = (await ask('POST', 'tenants', { slug: 'notified' })).json as { id: string };
    const end = await messaging.subscribeControl((message) => {
      if ('tenantId' in message && message.tenantId === tenantId) messages.push(message);
      news();
    });
    const expectSent = async (...types: string[]): Promise<void> => {
      while (messages.length < types.length) await new Promise<void>((resolve) => (news = resolve));
      expect(messages.splice(0).map(({ type }) => type)).toEqual(types);
    };
    const agent = { name: 'Second', description: 'x', runtime: 'echo', slug: 'second' };
    await ask('PATCH', 'tenants/notified/limits', { openStreams: 5 });
    await expectSent('limits-changed');
    await ask('POST', 'tenants/notified/agents', agent);
    await ask('DELETE', 'tenants/notified/agents/second');
    await expectSent('catalog-changed', 'catalog-changed');
    await ask('PUT', 'hosts/notified.example', { tenant: 'notified', agent: 'echo' });
    await ask('DELETE', 'hosts/notified.example');
    await expectSent('catalog-changed', 'catalog-changed');
    const issuer = { issuer: 'https://notified.example', audience: 'baton', check: false };
    const { id } = (await ask('POST', 'tenants/notified/issuers', issuer)).json as { id: string };
    await ask('DELETE', `tenants/notified/issuers/${id}`);
    await expectSent('issuers-changed', 'issuers-changed');
    const token = (await ask('POST', 'tenants/notified/tokens', { name: 'ci' })).json as { id: string };
    await ask('POST', `tenants/notified/tokens/${token.id}/rotate`, {});
    await ask('DELETE', `tenants/notified/tokens/${token.id}`);
    await expectSent('token-revoked', 'token-revoked');
    await ask('POST', 'tenants/notified/suspend', {});
    await expectSent('tenant-suspended');
    end();
    await messaging.close();
  });
});
