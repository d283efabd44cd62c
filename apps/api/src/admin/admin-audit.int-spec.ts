import { AuditStore, Database, OperatorTokenStore, PLATFORM, PLATFORM_ACTOR } from '@baton/database';
import { OperatorTokens, TokenService } from '@baton/identity';
import { randomUUID } from 'node:crypto';
import { MANAGEMENT_ROUTES } from '../../../../test/support/api/routes.js';
import { app, ask, managementUrl, operator, operatorKey, url } from './admin-api.fixture.js';

const audit = () => app.get(AuditStore, { strict: false });
const sql = (text: string) => app.get(Database, { strict: false }).systemQuery({ text }, []);
const UUID = /^[\da-f-]{36}$/;

/** A tenant that nothing else is done to. */
async function tenant(): Promise<string> {
  const slug = `tenant-${randomUUID().slice(0, 8)}`;
  await ask('POST', 'tenants', { slug });
  return slug;
}

async function token(slug: string): Promise<string> {
  const { json } = await ask('POST', `tenants/${slug}/tokens`, { name: 'ci' });
  return json.id as string;
}

const ISSUER = { audience: 'baton', check: false };
async function issuer(slug: string): Promise<string> {
  const entry = { issuer: `https://${slug}.example.com`, ...ISSUER };
  return (await ask('POST', `tenants/${slug}/issuers`, entry)).json.id as string;
}

/** A run of the tenant that has used up its attempts. */
async function deadRun(slug: string): Promise<string> {
  const { id: tenantId } = (await ask('GET', `tenants/${slug}`)).json as { id: string };
  const issued = { tenantId, name: 'caller', scopes: ['agents:call' as const], expiresAt: null };
  const { secret } = await app.get(TokenService, { strict: false }).issue(issued, PLATFORM_ACTOR);
  await fetch(`${url}/agents/echo`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'SendMessage',
      params: {
        message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'my secret words' }] },
        configuration: { returnImmediately: true },
      },
    }),
  });
  const [row] = await sql(
    `INSERT INTO dead_letters (tenant_id, run_id, task_id, agent_id, reason, attempts)
     SELECT tenant_id, id, task_id, 'echo', 'died', 3 FROM runs WHERE tenant_id = '${tenantId}' ON CONFLICT DO NOTHING
     RETURNING run_id::text AS id`,
  );
  return row!.id as string;
}

/** A task of the tenant with a push config that was given up. */
async function deadPush(slug: string): Promise<string> {
  const run = await deadRun(slug);
  const [row] = await sql(
    `INSERT INTO push_configs (tenant_id, task_id, id, url, protocol, state, delivered_sequence, head_sequence, failing_since)
     SELECT tenant_id, task_id, 'a', 'https://a.example', '1.0', 'dead', 0, 1, now() FROM runs WHERE id = '${run}'
     RETURNING task_id::text AS id`,
  );
  return row!.id as string;
}

const ECHO = { name: 'Second echo', description: 'Says it again', runtime: 'echo' };

/** A secret of the tenant. */
async function secret(slug: string): Promise<string> {
  await ask('PUT', `tenants/${slug}/secrets/crm`, { value: 'my secret words' });
  return 'crm';
}

async function host(slug: string): Promise<string> {
  const name = `${slug}.example.com`;
  await ask('PUT', `hosts/${name}`, { tenant: slug, agent: 'echo' });
  return name;
}

interface Step {
  path: string;
  body?: object;
  action: string;
  /** What the record names. */
  target: string | RegExp;
  /** The record is the platform's. */
  isPlatform?: true;
}

/** What each step makes happens to a tenant of its own. */
const T = 'POST /v1/admin/tenants/:tenant';
const TOKEN = '/v1/admin/tenants/:tenant/tokens/:token';

/**
 * How each route that writes is called, and what the audit log then says. A route that is not in here fails the test below:
 * every change of an operator has its record.
 */
const WRITES: Readonly<Record<string, (slug: string) => Promise<Step>>> = {
  'POST /v1/admin/tenants': async () => {
    const target = `tenant-${randomUUID().slice(0, 8)}`;
    return { path: 'tenants', body: { slug: target }, action: 'tenant.create', target };
  },
  'PATCH /v1/admin/tenants/:tenant': async (slug) => ({
    path: `tenants/${slug}`,
    body: { default_agent: 'echo' },
    action: 'tenant.update',
    target: slug,
  }),
  'DELETE /v1/admin/tenants/:tenant': async (slug) => ({
    path: `tenants/${slug}?confirm=${slug}`,
    action: 'tenant.delete',
    target: slug,
    isPlatform: true,
  }),
  [`${T}/suspend`]: async (slug) => ({
    path: `tenants/${slug}/suspend`,
    body: { reason: 'unpaid' },
    action: 'tenant.suspend',
    target: slug,
  }),
  [`${T}/resume`]: async (slug) => {
    await ask('POST', `tenants/${slug}/suspend`, {});
    return { path: `tenants/${slug}/resume`, action: 'tenant.resume', target: slug };
  },
  'PATCH /v1/admin/tenants/:tenant/limits': async (slug) => ({
    path: `tenants/${slug}/limits`,
    body: { openStreams: 5 },
    action: 'limits.change',
    target: slug,
  }),
  'PUT /v1/admin/tenants/:tenant/spending-caps/:period': async (slug) => ({
    path: `tenants/${slug}/spending-caps/day`,
    body: { amount: '5' },
    action: 'cap.set',
    target: UUID,
  }),
  'DELETE /v1/admin/tenants/:tenant/spending-caps/:period': async (slug) => {
    await ask('PUT', `tenants/${slug}/spending-caps/week`, { amount: '5' });
    return { path: `tenants/${slug}/spending-caps/week`, action: 'cap.delete', target: UUID };
  },
  // It reads, but what it reads leaves the platform.
  'GET /v1/admin/tenants/:tenant/export': async (slug) => ({
    path: `tenants/${slug}/export`,
    action: 'tenant.export',
    target: slug,
  }),
  [`${T}/tokens`]: async (slug) => ({
    path: `tenants/${slug}/tokens`,
    body: { name: 'ci' },
    action: 'token.create',
    target: UUID,
  }),
  [`PATCH ${TOKEN}`]: async (slug) => {
    const target = await token(slug);
    const path = `tenants/${slug}/tokens/${target}`;
    return { path, body: { agents: ['echo'] }, action: 'token.update', target };
  },
  [`POST ${TOKEN}/rotate`]: async (slug) => {
    const target = await token(slug);
    return { path: `tenants/${slug}/tokens/${target}/rotate`, body: {}, action: 'token.rotate', target };
  },
  [`DELETE ${TOKEN}`]: async (slug) => {
    const target = await token(slug);
    return { path: `tenants/${slug}/tokens/${target}?stop=true`, action: 'token.revoke', target };
  },
  [`${T}/issuers`]: async (slug) => ({
    path: `tenants/${slug}/issuers`,
    body: { issuer: `https://${slug}.example.com`, ...ISSUER },
    action: 'issuer.add',
    target: UUID,
  }),
  'DELETE /v1/admin/tenants/:tenant/issuers/:id': async (slug) => {
    const target = await issuer(slug);
    return { path: `tenants/${slug}/issuers/${target}`, action: 'issuer.remove', target };
  },
  [`${T}/agents`]: async (slug) => ({
    path: `tenants/${slug}/agents`,
    body: ECHO,
    action: 'agent.create',
    target: 'second-echo',
  }),
  'DELETE /v1/admin/tenants/:tenant/agents/:agent': async (slug) => {
    await ask('POST', `tenants/${slug}/agents`, ECHO);
    return { path: `tenants/${slug}/agents/second-echo`, action: 'agent.delete', target: 'second-echo' };
  },
  'PUT /v1/admin/tenants/:tenant/secrets/:name': async (slug) => ({
    path: `tenants/${slug}/secrets/crm`,
    body: { value: 'my secret words', origins: ['https://crm.example.com'] },
    action: 'secret.set',
    target: 'crm',
  }),
  'PATCH /v1/admin/tenants/:tenant/secrets/:name': async (slug) => {
    const target = await secret(slug);
    const body = { origins: ['https://crm.example.com'] };
    return { path: `tenants/${slug}/secrets/${target}`, body, action: 'secret.origins', target };
  },
  'DELETE /v1/admin/tenants/:tenant/secrets/:name': async (slug) => {
    const target = await secret(slug);
    return { path: `tenants/${slug}/secrets/${target}`, action: 'secret.delete', target };
  },
  'PUT /v1/admin/hosts/:host': async (slug) => {
    const target = `${slug}.example.com`;
    const body = { tenant: slug, agent: 'echo' };
    return { path: `hosts/${target}`, body, action: 'host.bind', target };
  },
  'DELETE /v1/admin/hosts/:host': async (slug) => {
    const target = await host(slug);
    return { path: `hosts/${target}`, action: 'host.unbind', target };
  },
  'DELETE /v1/admin/operator-tokens/:token': async () => {
    const { token: made } = await app.get(OperatorTokens, { strict: false }).issue('gone', null);
    const step = { path: `operator-tokens/${made.prefix}`, action: 'operator-token.revoke', target: made.id };
    return { ...step, isPlatform: true };
  },
  'POST /v1/admin/dead-letters/:runId/redeliver': async (slug) => {
    const target = await deadRun(slug);
    return { path: `dead-letters/${target}/redeliver`, action: 'dead-letter.redeliver', target };
  },
  'POST /v1/admin/dead-pushes/:id/redeliver': async (slug) => {
    const target = await deadPush(slug);
    return { path: `dead-pushes/${target}/redeliver`, action: 'push.redeliver', target };
  },
};
/** Its body is no JSON: it has a test of its own. */
const IMPORT = `${T}/import`;

const writing = MANAGEMENT_ROUTES.filter(({ access }) => access === 'operator')
  .map(({ method, path }) => `${method} ${path}`)
  .filter((route) => !route.startsWith('GET ') || route in WRITES);

/** All records of changes, of every tenant and of the platform, that `work` has written. */
async function writtenBy(work: () => Promise<void>) {
  const known = new Set((await audit().list({ limit: 1_000 })).map(({ id }) => id));
  await work();
  const all = await audit().list({ limit: 1_000 });
  return all.filter(({ id, action }) => !known.has(id) && action !== 'signin.refused');
}

/** Tokens that are not good for operators, by what is wrong with them. */
let refused: Record<string, string>;
beforeAll(async () => {
  const operators = app.get(OperatorTokens, { strict: false });
  const revoked = await operators.issue('revoked', null);
  await app.get(OperatorTokenStore, { strict: false }).revoke(revoked.token.id, PLATFORM_ACTOR);
  const { json } = await ask('POST', `tenants/${await tenant()}/tokens`, { name: 'x', scopes: ['admin'] });
  refused = {
    revoked: revoked.secret,
    expired: (await operators.issue('expired', new Date(Date.now() - 1))).secret,
    unknown: `baton_operator_${'x'.repeat(43)}`,
    'of a tenant': json.secret as string,
  };
});

describe('/v1/admin/audit', () => {
  it('has pages of one tenant or of all, and the same as JSON lines', async () => {
    const [slug, other] = [await tenant(), await tenant()];
    for (const to of [slug, slug, other]) await token(to);
    const actions = async (query: string): Promise<string[]> => {
      const { json } = await ask('GET', `audit?${query}`);
      return (json.records as { action: string }[]).map(({ action }) => action);
    };
    expect(await actions(`tenant=${slug}`)).toEqual(['token.create', 'token.create', 'tenant.create']);
    expect(await actions(`tenant=${slug}&action=tenant`)).toEqual(['tenant.create']);
    expect(await actions(`tenant=${slug}&until=2020-01-01T00:00:00Z`)).toEqual([]);
    const ids: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const { json } = await ask('GET', `audit?tenant=${slug}&limit=2&cursor=${cursor}`);
      ids.push(...(json.records as { id: string }[]).map(({ id }) => id));
      cursor = json.next_cursor as string | null;
    }
    expect(new Set(ids).size).toBe(3);
    const all = (await ask('GET', 'audit?limit=100')).json.records as { tenant_id: string | null }[];
    expect(new Set(all.map((record) => record.tenant_id)).size).toBeGreaterThan(1);
    const headers = { authorization: `Bearer ${operator}` };
    const lines = async (query: string) => {
      const response = await fetch(`${managementUrl}/v1/admin/audit/export?${query}`, { headers });
      expect(response.headers.get('content-type')).toBe('application/x-ndjson');
      const text = await response.text();
      return text
        .split('\n')
        .flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as { id: string }).id]));
    };
    expect(await lines(`tenant=${slug}`)).toEqual(ids);
    expect(await lines(`tenant=${slug}&action=token`)).toEqual(ids.slice(0, 2));
    expect(await lines(`tenant=${slug}&from=2999-01-01T00:00:00Z`)).toEqual([]);
    expect((await lines('')).length).toBeGreaterThan(3);
    for (const path of ['audit', 'audit/export']) {
      expect((await ask('GET', `${path}?tenant=nobody`)).status).toBe(404);
      expect((await ask('GET', `${path}?action=nothing`)).json.error.fields).toMatchObject([
        { field: 'action' },
      ]);
      expect((await ask('GET', path, undefined, refused['of a tenant'])).status).toBe(401);
    }
  });
});

it('the dead letters of one tenant and of all have pages', async () => {
  const [one, two] = [await tenant(), await tenant()];
  const runs = {
    [one]: [await deadRun(one), await deadRun(one), await deadRun(one)],
    [two]: [await deadRun(two)],
  };
  const listed = async (query: string): Promise<string[]> => {
    const found: string[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const { json } = await ask('GET', `dead-letters?limit=2&cursor=${cursor}${query}`);
      const page = json.dead_letters as { run_id: string }[];
      expect(page.length).toBeLessThanOrEqual(2);
      found.push(...page.map((letter) => letter.run_id));
      cursor = json.next_cursor as string | null;
    }
    return found;
  };
  expect((await listed(`&tenant=${one}`)).sort()).toEqual(runs[one]!.sort());
  const all = await listed('');
  expect(all).toHaveLength(new Set(all).size);
  expect(all).toEqual(expect.arrayContaining([...runs[one]!, ...runs[two]!]));
  expect((await ask('GET', 'dead-letters?cursor=nonsense')).json.error.fields).toMatchObject([
    { field: 'cursor' },
  ]);
});

describe('every route of operators that writes', () => {
  it('has a row in the table above', () => {
    expect([...writing].sort()).toEqual([...Object.keys(WRITES), IMPORT].sort());
  });

  it.each(Object.keys(WRITES))(
    '%s is for valid tokens of operators alone, and writes one record in the log of the tenant',
    async (route) => {
      const slug = await tenant();
      const [method = ''] = route.split(' ');
      const step = await WRITES[route]!(slug);
      const { path, body, action, target, isPlatform } = step;
      const written = await writtenBy(async () => {
        for (const [kind, bad] of Object.entries(refused)) {
          expect([kind, (await ask(method, path, body, bad)).status]).toEqual([kind, 401]);
        }
        const { status, json } = await ask(method, path, body);
        expect([status < 300, json]).toEqual([true, json]);
      });
      const { id } = (await ask('GET', `tenants/${action === 'tenant.create' ? String(target) : slug}`)).json;
      expect(written).toMatchObject([
        {
          tenantId: isPlatform ? PLATFORM : (id as string),
          action,
          outcome: 'ok',
          source: 'loopback',
          actor: {
            kind: 'operator',
            key: operatorKey,
            name: expect.stringMatching(/^ops \(baton_operator_/) as string,
          },
          requestId: expect.any(String) as string,
          target: { name: typeof target === 'string' ? target : (expect.stringMatching(target) as string) },
        },
      ]);
      expect(written).toHaveLength(1);
      expect(JSON.stringify(written)).not.toContain('my secret words');
    },
  );

  it(`${IMPORT} does so, too`, async () => {
    const headers = { authorization: `Bearer ${operator}`, 'content-type': 'application/x-ndjson' };
    const at = `${managementUrl}/v1/admin/tenants`;
    const file = await (await fetch(`${at}/${await tenant()}/export`, { headers })).text();
    const written = await writtenBy(async () => {
      const response = await fetch(`${at}/imported/import`, { method: 'POST', headers, body: file });
      expect(response.status).toBe(201);
    });
    expect(written).toMatchObject([
      {
        action: 'tenant.import',
        target: { kind: 'tenant', name: 'imported' },
        actor: { kind: 'operator', key: operatorKey },
      },
    ]);
  });

  it('writes none for what is refused or changes nothing', async () => {
    const slug = await tenant();
    const written = await writtenBy(async () => {
      await ask('POST', 'tenants', { slug });
      await ask('PATCH', `tenants/${slug}/limits`, { weight: null });
      await ask('POST', `tenants/${slug}/issuers`, { issuer: 'nothing', ...ISSUER });
      await ask('DELETE', `tenants/${slug}/tokens/nothing`);
      await ask('DELETE', 'hosts/nothing.example');
      await ask('DELETE', `tenants/${slug}/secrets/nothing`);
      await ask('PUT', `tenants/${slug}/secrets/crm`, { value: '' });
      await ask('POST', `tenants/${slug}/agents`, { ...ECHO, runtime: 'abacus' });
      await ask('DELETE', `tenants/${slug}/agents/echo`);
      await ask('POST', `dead-letters/${randomUUID()}/redeliver`);
      await ask('DELETE', 'operator-tokens/baton_operator_none');
    });
    expect(written).toEqual([]);
  });
});
