import type { Scope } from '@baton/a2a';
import { TenantStore, PLATFORM_ACTOR } from '@baton/database';
import { TokenService } from '@baton/identity';
import { randomUUID } from 'node:crypto';
import { app, Tenant, url } from '../agents/catalog-api.fixture.js';

type Json = Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- tests look at the wire

let tenant: Tenant;
beforeAll(async () => {
  tenant = await Tenant.create(['admin']);
});

/** A request with the secret of a token. */
async function ask(secret: string, method: string, path: string, body?: object) {
  const headers = {
    authorization: `Bearer ${secret}`,
    'content-type': 'application/json',
    'a2a-version': '1.0',
  };
  const sent = body && { body: JSON.stringify(body) };
  const response = await fetch(url + path, { method, headers, ...sent });
  const text = await response.text();
  return {
    status: response.status,
    text,
    location: response.headers.get('location'),
    json: (text === '' ? {} : JSON.parse(text)) as Json,
  };
}
const admin = (method: string, path: string, body?: object) =>
  ask(tenant.token, method, `/v1/tokens${path}`, body);
/** A new token, which must be made. */
async function create(body: object = {}, by = tenant.token): Promise<Json> {
  const { status, json } = await ask(by, 'POST', '/v1/tokens', { name: 'ci', ...body });
  expect([status, json]).toEqual([201, expect.objectContaining({ secret: expect.any(String) as string })]);
  return json;
}
/** An administrator with fewer rights. */
async function limited(rights: object): Promise<string> {
  return (await create({ scopes: ['admin'], ...rights })).secret as string;
}

const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
const send = (messageId: string = randomUUID()) =>
  rpc('SendMessage', {
    message: { messageId, role: 'ROLE_USER', parts: [{ text: 'hi' }] },
    configuration: { returnImmediately: true },
  });
const call = (secret: string, body: object) => ask(secret, 'POST', '/agents/echo', body);
const SOON = new Date(Date.now() + 3_600_000).toISOString();
const LATER = new Date(Date.now() + 7_200_000).toISOString();

describe('tokens over HTTP', () => {
  it('get the least that is useful, unless more is named', async () => {
    const { status, json, location } = await admin('POST', '', { name: ' ci ' });
    expect([status, location]).toEqual([201, `/v1/tokens/${json.id as string}`]);
    const { secret, ...token } = json;
    expect(token).toEqual({
      id: expect.any(String) as string,
      name: 'ci',
      prefix: (secret as string).slice(0, 12),
      state: 'active',
      scopes: ['agents:call'],
      agents: null,
      requests_per_second: null,
      expires_at: null,
      last_used_at: null,
      previous_prefix: null,
      previous_until: null,
      revoked_at: null,
      created_at: expect.any(String) as string,
    });
    expect((await call(secret as string, send())).status).toBe(200);
    expect((await ask(secret as string, 'GET', '/v1/tokens')).status).toBe(403);
    const more = { scopes: ['tasks:read'], agents: ['echo'], requests_per_second: 7, expires_at: SOON };
    expect(await create(more)).toMatchObject(more);
  });

  it('are listed in pages, and shown, without their secrets', async () => {
    const own = await Tenant.create(['admin']);
    const made = [];
    for (let i = 0; i < 3; i += 1) made.unshift(await create({ name: `n${i}` }, own.token));
    const found: Json[] = [];
    let cursor = '';
    do {
      const { json } = await ask(own.token, 'GET', `/v1/tokens?limit=2${cursor && `&cursor=${cursor}`}`);
      expect((json.tokens as Json[]).length).toBeLessThanOrEqual(2);
      found.push(...(json.tokens as Json[]));
      cursor = json.next_cursor as string;
    } while (cursor);
    const strip = ({ secret: _, ...token }: Json) => token;
    expect(found.slice(0, 3)).toEqual(made.map(strip));
    expect(found).toHaveLength(4);
    const { json } = await ask(own.token, 'GET', `/v1/tokens/${made[0]!.id as string}`);
    expect(json).toEqual({ ...strip(made[0]!), running: { tasks: [], more_tasks: false, schedules: [] } });
  });

  it.each<[object, string]>([
    [{ name: '' }, 'name'],
    [{ name: 'a\nb' }, 'name'],
    [{ name: 'x', scopes: [] }, 'scopes'],
    [{ name: 'x', scopes: ['root'] }, 'scopes[0]'],
    [{ name: 'x', agents: [] }, 'agents'],
    [{ name: 'x', agents: ['Echo'] }, 'agents[0]'],
    [{ name: 'x', agents: Array.from({ length: 101 }, (_, i) => `a${i}`) }, 'agents'],
    [{ name: 'x', requests_per_second: 0 }, 'requests_per_second'],
    [{ name: 'x', expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
    [{ name: 'x', expires_at: 'soon' }, 'expires_at'],
    // With its offset it is in the year 10000.
    [{ name: 'x', expires_at: '9999-12-31T23:59:59-01:00' }, 'expires_at'],
    [{ name: 'x', secret: 'mine' }, 'secret'],
    [{}, 'name'],
  ])('are not made from %j: the error names the field', async (body, field) => {
    const { status, json } = await admin('POST', '', body);
    expect([status, json.error.fields[0].field]).toEqual([400, field]);
  });

  it('can be changed, at once and everywhere', async () => {
    const { id, secret } = await create({ scopes: ['agents:call', 'tasks:read'] });
    expect((await ask(secret as string, 'GET', '/v1/tasks')).status).toBe(200);
    const patch = { name: 'new', scopes: ['schedules:write'], agents: ['index'], requests_per_second: 50 };
    expect((await admin('PATCH', `/${id as string}`, patch)).json).toMatchObject(patch);
    expect((await ask(secret as string, 'GET', '/v1/tasks')).status).toBe(403);
    const back = { agents: null, requests_per_second: null, scopes: ['agents:call'] };
    expect((await admin('PATCH', `/${id as string}`, back)).json).toMatchObject({ ...back, name: 'new' });
    expect((await call(secret as string, send())).status).toBe(200);
  });

  it('give nothing that their maker lacks', async () => {
    const maker = await limited({ agents: ['echo', 'index'], requests_per_second: 50, expires_at: SOON });
    const inherited = { agents: ['echo', 'index'], requests_per_second: 50, expires_at: SOON };
    const { id } = await create({}, maker);
    expect((await ask(maker, 'GET', `/v1/tokens/${id as string}`)).json).toMatchObject(inherited);
    await create({ agents: ['echo'], requests_per_second: 9, expires_at: SOON }, maker);
    for (const more of [
      { agents: null },
      { agents: ['echo', 'other'] },
      { requests_per_second: 51 },
      { requests_per_second: null },
      { expires_at: null },
      { expires_at: LATER },
    ]) {
      const [field] = Object.keys(more);
      const message = expect.stringMatching(`^${field!}: a token cannot give what it lacks: `) as string;
      const made = await ask(maker, 'POST', '/v1/tokens', { name: 'x', ...more });
      expect(made).toMatchObject({ status: 403, json: { error: { message } } });
      const changed = await ask(maker, 'PATCH', `/v1/tokens/${id as string}`, more);
      expect(changed).toMatchObject({ status: 403, json: { error: { message } } });
    }
  });

  it('that have more rights cannot be taken over by a rotation', async () => {
    const { id } = await create();
    for (const less of [{ requests_per_second: 5 }, { expires_at: SOON }]) {
      const maker = await limited(less);
      expect((await ask(maker, 'POST', `/v1/tokens/${id as string}/rotate`, {})).status).toBe(403);
      expect((await ask(maker, 'GET', `/v1/tokens/${id as string}`)).status).toBe(200);
    }
  });

  it('of agents that do not exist for an administrator do not exist for it', async () => {
    const maker = await limited({ agents: ['echo'] });
    const theirs = [await create(), await create({ agents: ['echo', 'secret-agent'] })];
    for (const { id } of theirs) {
      for (const [method, path, body] of [
        ['GET', ''],
        ['PATCH', '', { name: 'mine' }],
        ['POST', '/rotate', {}],
        ['DELETE', ''],
      ] as const) {
        expect((await ask(maker, method, `/v1/tokens/${id as string}${path}`, body)).status).toBe(404);
      }
    }
    const listed = await ask(maker, 'GET', '/v1/tokens?limit=100');
    expect(listed.text).not.toContain('secret-agent');
    expect((listed.json.tokens as Json[]).every(({ agents }) => String(agents) === 'echo')).toBe(true);
  });

  it('keep their tasks and message ids when they are rotated, and so do both secrets', async () => {
    const { id, secret } = await create();
    const first = (await call(secret as string, send('same'))).json.result.task.id as string;
    const rotated = await admin('POST', `/${id as string}/rotate`, { overlap_seconds: 600 });
    expect(rotated).toMatchObject({
      status: 200,
      json: { id, previous_prefix: (secret as string).slice(0, 12) },
    });
    const fresh = rotated.json.secret as string;
    for (const each of [fresh, secret as string]) {
      expect((await call(each, send('same'))).json.result.task.id).toBe(first);
      expect((await call(each, rpc('GetTask', { id: first }))).json.result.id).toBe(first);
    }
    await admin('POST', `/${id as string}/rotate`, { overlap_seconds: 0 });
    for (const each of [fresh, secret as string]) expect((await call(each, send())).status).toBe(401);
    expect((await admin('POST', `/${id as string}/rotate`, { overlap_seconds: 2_592_001 })).status).toBe(400);
  });

  it('that are revoked say what they leave, and stop it on request', async () => {
    const { id, secret } = await create({ scopes: ['agents:call', 'schedules:write'] });
    const own = (await call(secret as string, send())).json.result.task.id as string;
    const theirs = (await call(tenant.token, send())).json.result.task.id as string;
    const schedule = { name: 'left', agent: 'echo', cron: '@yearly', text: 'hi' };
    const { id: scheduleId } = (await ask(secret as string, 'POST', '/v1/schedules', schedule)).json;
    const running = {
      tasks: [{ task_id: own, request_id: own, agent_id: 'echo', state: 'submitted' }],
      more_tasks: false,
      schedules: [{ schedule_id: scheduleId as string, name: 'left', agent: 'echo' }],
    };
    expect((await admin('GET', `/${id as string}`)).json.running).toEqual(running);
    const revoked = await admin('DELETE', `/${id as string}`);
    expect(revoked).toMatchObject({ status: 200, json: { state: 'revoked', running } });
    expect((await call(secret as string, send())).status).toBe(401);
    expect((await admin('DELETE', `/${id as string}?stop=maybe`)).status).toBe(400);
    const none = { tasks: [], more_tasks: false, schedules: [] };
    const stopped = await admin('DELETE', `/${id as string}?stop=true`);
    expect(stopped.json).toMatchObject({ canceled_tasks: 1, paused_schedules: 1, running: none });
    expect((await ask(tenant.token, 'GET', `/v1/tasks/${own}`)).json.state).toBe('canceled');
    expect((await ask(tenant.token, 'GET', `/v1/tasks/${theirs}`)).json.state).toBe('submitted');
    expect((await ask(tenant.token, 'GET', '/v1/schedules/left')).json.paused).toBe(true);
    for (const [method, path] of [
      ['PATCH', ''],
      ['POST', '/rotate'],
    ] as const) {
      const { status, json } = await admin(method, `/${id as string}${path}`, {});
      expect([status, json.error.message]).toEqual([409, 'the token was revoked: create another']);
    }
  });

  it.each<Scope[][]>([[['agents:call']], [['tasks:read', 'tasks:write', 'agents:write', 'secrets:write']]])(
    'are nothing for %j',
    async (scopes) => {
      const { token } = await tenant.with(...scopes);
      const { id } = await create();
      for (const [method, path] of [
        ...([
          ['GET', ''],
          ['POST', ''],
          ['GET', `/${id as string}`],
        ] as const),
        ...([
          ['PATCH', `/${id as string}`],
          ['DELETE', `/${id as string}`],
        ] as const),
        ['POST', `/${id as string}/rotate`] as const,
      ]) {
        expect(
          (await ask(token, method, `/v1/tokens${path}`, method === 'GET' ? undefined : {})).status,
        ).toBe(403);
      }
    },
  );

  it('are bounded in number, and those that were revoked do not count', async () => {
    const { id, slug } = await Tenant.create();
    const tokens = app.get(TokenService, { strict: false });
    await app.get(TenantStore, { strict: false }).setLimits(slug, { tokens: 3 }, [], PLATFORM_ACTOR);
    const issue = () =>
      tokens.issue({ tenantId: id, name: 'x', scopes: [], expiresAt: null }, PLATFORM_ACTOR);
    const issued = await Promise.allSettled([issue(), issue(), issue(), issue()]);
    const good = issued.flatMap((one) => (one.status === 'fulfilled' ? [one.value.token] : []));
    expect(good).toHaveLength(2);
    await expect(issue()).rejects.toMatchObject({
      kind: 'limit-exceeded',
      message:
        'the limit tokens of this tenant is reached, which is 3: revoke unused tokens, or ask the operator for more',
    });
    await tokens.revoke(id, good[0]!.id, PLATFORM_ACTOR);
    await issue();
    await expect(issue()).rejects.toMatchObject({ kind: 'limit-exceeded' });
  });
});
