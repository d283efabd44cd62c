import type { Scope } from '@baton/a2a';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { KEEPS_CONNECTIONS } from '../../../../../test/support/server-options.js';
import { ECHO, sql, Tenant, url } from '../agents/catalog-api.fixture.js';

type Json = Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- tests look at the wire

// A public address, so that no name is looked up. No test calls it.
const RECEIVER = 'https://1.1.1.1/baton';
const UNKNOWN = '01980000-0000-7000-8000-000000000000';
const ALL: Scope[] = ['admin'];

async function ask(tenant: Tenant, method: string, path = '', body?: object) {
  const headers = { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' };
  const sent = body && { body: JSON.stringify(body) };
  const response = await fetch(`${url}/v1/webhooks${path}`, { method, headers, ...sent });
  const text = await response.text();
  return { status: response.status, text, json: (text === '' ? {} : JSON.parse(text)) as Json };
}

async function create(tenant: Tenant, body: object = {}): Promise<Json> {
  const { status, json, text } = await ask(tenant, 'POST', '', { url: RECEIVER, ...body });
  expect([status, text]).toEqual([201, expect.any(String)]);
  return json;
}

/** The webhooks with a push config of the task of a new message. */
async function toldOf(tenant: Tenant, agent: string): Promise<string[]> {
  const { json } = (await tenant.send(agent)) as unknown as { json: { result: { task: { id: string } } } };
  const { id } = json.result.task;
  const { rows } = await sql(
    `SELECT p.*, t.push_configs AS count FROM tasks t LEFT JOIN push_configs p ON p.task_id = t.id WHERE t.id = '${id}'`,
  );
  const configs = rows.filter((row) => row.webhook_id !== null);
  expect(rows[0]?.count).toBe(configs.length);
  for (const config of configs) {
    expect(config).toMatchObject({
      protocol: 'webhook',
      delivered_sequence: 0,
      head_sequence: 1,
      state: 'active',
    });
    expect(config.due_at).toBeInstanceOf(Date);
  }
  return configs.map((row) => row.webhook_id as string).toSorted();
}

describe('webhooks over HTTP', () => {
  it('are made, shown, changed and deleted; the secret is shown once and is not stored as it is', async () => {
    const tenant = await Tenant.create(ALL);
    const { secret, ...made } = await create(tenant, { agents: ['echo'], states: ['completed'] });
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(made).toEqual({
      id: expect.any(String),
      url: RECEIVER,
      agents: ['echo'],
      states: ['completed'],
      enabled: true,
      created_by: expect.stringMatching(/^token:/),
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    const path = `/${made.id as string}`;
    expect((await ask(tenant, 'GET', path)).json).toEqual(made);
    const patch = { url: 'https://1.1.1.1/other', agents: null, states: null, enabled: false };
    expect((await ask(tenant, 'PATCH', path, patch)).json).toMatchObject(patch);
    expect((await ask(tenant, 'PATCH', path, {})).json).toMatchObject(patch);
    const { text, json } = await ask(tenant, 'GET');
    expect(json).toMatchObject({ webhooks: [{ id: made.id, ...patch }], next_cursor: null });
    expect(text).not.toContain('whsec_');
    const { rows } = await sql(`SELECT encode(ciphertext, 'escape') AS text FROM webhooks`);
    expect(JSON.stringify(rows)).not.toContain((secret as string).slice(6, 20));
    expect((await ask(tenant, 'DELETE', path)).status).toBe(204);
    expect((await ask(tenant, 'GET', path)).status).toBe(404);
    expect((await ask(tenant, 'DELETE', path)).status).toBe(404);
  });

  it('are listed in pages, the oldest first', async () => {
    const tenant = await Tenant.create(ALL);
    const made: unknown[] = [];
    for (let i = 0; i < 3; i += 1) made.push((await create(tenant)).id);
    const first = await ask(tenant, 'GET', '?limit=2');
    const last = await ask(tenant, 'GET', `?limit=2&cursor=${first.json.next_cursor as string}`);
    const ids = [first, last].flatMap(({ json }) => (json.webhooks as Json[]).map(({ id }) => id as unknown));
    expect([ids, last.json.next_cursor]).toEqual([made, null]);
    expect((await ask(tenant, 'GET', `?cursor=${Buffer.from('x').toString('base64url')}`)).status).toBe(400);
  });

  it.each<[object, string]>([
    [{ url: 'ftp://receiver.example.com' }, 'url'],
    [{ url: 'https://user:password@receiver.example.com' }, 'url'],
    [{ url: undefined }, 'url'],
    // As a push config's, its address is looked up at once.
    [{ url: 'http://10.0.0.1/' }, 'url'],
    [{ url: 'http://169.254.169.254/latest' }, 'url'],
    [{ agents: ['nobody-here'] }, 'agents[0]'],
    [{ agents: [] }, 'agents'],
    [{ states: ['DONE'] }, 'states[0]'],
    [{ secret: 'whsec_mine' }, 'secret'],
  ])('refuse %j and name the field', async (wrong, field) => {
    const tenant = await Tenant.create(ALL);
    const { status, json } = await ask(tenant, 'POST', '', { url: RECEIVER, ...wrong });
    expect([status, (json.error as Json).fields]).toEqual([400, [expect.objectContaining({ field })]]);
    const { id } = await create(tenant);
    if (field !== 'secret' && 'url' in wrong && wrong.url === undefined) return;
    expect((await ask(tenant, 'PATCH', `/${id as string}`, wrong)).status).toBe(400);
  });

  it('refuse an address that the tenant may not call', async () => {
    const tenant = await Tenant.create(ALL);
    await sql(`UPDATE tenants SET egress_deny = '{1.1.1.1}' WHERE id = '${tenant.id}'`);
    const { status, text } = await ask(tenant, 'POST', '', { url: RECEIVER });
    expect([status, text]).toEqual([400, expect.stringContaining('egress_deny')]);
  });

  it('are limited in number', async () => {
    const tenant = await Tenant.create(ALL);
    await sql(`UPDATE tenants SET limits = '{"webhooks": 2}' WHERE id = '${tenant.id}'`);
    const answers = await Promise.all([1, 2, 3].map(() => ask(tenant, 'POST', '', { url: RECEIVER })));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 201, 429]);
    expect(answers.map(({ text }) => text).join()).toContain('delete unused webhooks');
  });

  it('are for administrators; one with a list of agents has only the webhooks of these', async () => {
    const tenant = await Tenant.create(ALL);
    const all = await create(tenant);
    const index = await create(tenant, { agents: ['index'] });
    expect((await ask(await tenant.with('tasks:read'), 'GET')).status).toBe(403);
    const limited = await tenant.only(['index'], 'admin');
    expect(((await ask(limited, 'GET')).json.webhooks as Json[]).map(({ id }) => id as unknown)).toEqual([
      index.id,
    ]);
    expect((await ask(limited, 'GET', `/${all.id as string}`)).status).toBe(404);
    expect((await ask(limited, 'PATCH', `/${index.id as string}`, { agents: null })).status).toBe(400);
    expect((await ask(limited, 'POST', '', { url: RECEIVER, agents: ['echo'] })).status).toBe(400);
    expect(await create(limited)).toMatchObject({ agents: ['index'] });
  });

  it('of another tenant do not exist', async () => {
    const { id } = await create(await Tenant.create(ALL));
    const stranger = await Tenant.create(ALL);
    for (const wanted of [id as string, UNKNOWN, 'x']) {
      for (const [method, path] of [
        ['GET', ''],
        ['PATCH', ''],
        ['DELETE', ''],
        ['POST', '/rotate'],
        ['POST', '/test'],
        ['GET', '/deliveries'],
        ['POST', '/redeliver'],
      ] as const) {
        expect(
          (await ask(stranger, method, `/${wanted}${path}`, method === 'GET' ? undefined : {})).status,
        ).toBe(404);
      }
    }
  });
});

describe('the events of a task go to', () => {
  it('the webhooks of its tenant that are enabled and want its agent', async () => {
    const tenant = await Tenant.create(ALL);
    await tenant.ask('POST', '', { ...ECHO, slug: 'own' });
    expect(await toldOf(tenant, 'echo')).toEqual([]);
    const id = async (body: object = {}) => (await create(tenant, body)).id as string;
    const [all, echo, own] = [
      await id(),
      await id({ agents: ['echo'] }),
      await id({ agents: ['own', 'index'] }),
    ];
    await id({ enabled: false });
    await create(await Tenant.create(ALL));
    expect(await toldOf(tenant, 'echo')).toEqual([all, echo].toSorted());
    expect(await toldOf(tenant, 'own')).toEqual([all, own].toSorted());
    await ask(tenant, 'PATCH', `/${all}`, { enabled: false });
    expect(await toldOf(tenant, 'own')).toEqual([own]);
  });

  it('a webhook with these states, until the webhook is deleted', async () => {
    const tenant = await Tenant.create(ALL);
    const { id } = await create(tenant, { states: ['completed', 'failed'] });
    expect(await toldOf(tenant, 'echo')).toEqual([id]);
    const configs = async () =>
      (await sql(`SELECT states FROM push_configs WHERE webhook_id = '${id as string}'`)).rows;
    expect(await configs()).toEqual([{ states: [3, 4] }]);
    await ask(tenant, 'DELETE', `/${id as string}`);
    expect(await configs()).toEqual([]);
    expect(await toldOf(tenant, 'echo')).toEqual([]);
  });

  it('a webhook whose failures are listed, and again on request', async () => {
    const tenant = await Tenant.create(ALL);
    const id = (await create(tenant)).id as string;
    const health = async () => ((await ask(tenant, 'GET')).json.webhooks as Json[])[0]!.health as unknown;
    const deliveries = async (query = '') =>
      (await ask(tenant, 'GET', `/${id}/deliveries${query}`)).json as {
        deliveries: Json[];
        next_cursor: string;
      };
    expect(await health()).toBeNull();
    for (let i = 0; i < 3; i++) await toldOf(tenant, 'echo');
    expect((await deliveries()).deliveries).toMatchObject(Array(3).fill({ state: 'waiting', waiting: 1 }));
    const [first, second, third] = (await deliveries()).deliveries.map(({ task_id: task }) => task as string);
    const set = (task: string | undefined, change: string) =>
      sql(`UPDATE push_configs SET ${change} WHERE task_id = '${task ?? ''}'`);
    const failing = `failures = 2, failing_since = now(), last_status = 500, last_error = 'HTTP 500'`;
    await set(first, `${failing}, due_at = now() + interval '1 hour'`);
    await set(second, `${failing}, state = 'dead', due_at = NULL`);
    await set(third, `delivered_sequence = 1, last_status = 204, due_at = NULL`);
    expect((await deliveries()).deliveries).toMatchObject([
      {
        task_id: first,
        state: 'retrying',
        status: 500,
        error: 'HTTP 500',
        failures: 2,
        next_at: expect.any(String),
      },
      { task_id: second, state: 'given-up', next_at: null },
      { task_id: third, state: 'delivered', status: 204, delivered_event: 1, waiting: 0 },
    ]);
    expect(await health()).toEqual({ tasks: 3, retrying: 1, given_up: 1, status: 500, error: 'HTTP 500' });
    const exchange = { sequence: 1, headers: { 'webhook-id': 'x' }, body: '{}', bytes: 2, answer: 'no room' };
    const old = { at: new Date(), ms: 5, status: null, error: 'it did not answer' };
    const tries = JSON.stringify([old, { ...old, status: 500, error: 'it answered HTTP 500', exchange }]);
    await set(first, `tries = '${tries}'`);
    const [one, ...others] = (await deliveries(`?task=${first}`)).deliveries;
    expect([one?.task_id, others]).toEqual([first, []]);
    const { sequence: event, answer, ...request } = exchange;
    expect(one?.tries).toMatchObject([
      { status: null, duration_ms: 5, request: null, answer: null },
      { status: 500, request: { method: 'POST', event, ...request }, answer },
    ]);
    expect((await deliveries()).deliveries[0]).not.toHaveProperty('tries');
    expect((await ask(tenant, 'GET', `/${id}/deliveries?task=x`)).status).toBe(400);
    const page = await deliveries('?limit=1');
    expect((await deliveries(`?limit=2&cursor=${page.next_cursor}`)).deliveries).toMatchObject([
      { task_id: second },
      { task_id: third },
    ]);
    const { json } = await ask(tenant, 'POST', `/${id}/redeliver`);
    expect(json).toEqual({ tasks: [first, second] });
    expect(await health()).toMatchObject({ retrying: 0, given_up: 0 });
    // The receiver gets the last event of this one again.
    expect((await ask(tenant, 'POST', `/${id}/redeliver?task=${third}`)).json).toEqual({ tasks: [third] });
    expect((await deliveries()).deliveries.at(-1)).toMatchObject({ state: 'waiting', delivered_event: 0 });
    // A worker that delivers it right now continues.
    await set(third, `lease_until = now() + interval '1 hour'`);
    expect((await ask(tenant, 'POST', `/${id}/redeliver?task=${third}`)).json).toEqual({ tasks: [] });
    expect((await ask(tenant, 'POST', `/${id}/redeliver?task=x`)).status).toBe(400);
    expect((await ask(tenant, 'GET', `/${id}/deliveries?cursor=eA`)).status).toBe(400);
    expect((await ask(await tenant.with('tasks:read'), 'GET', `/${id}/deliveries`)).status).toBe(403);
  });

  it('no receiver, if the message is refused or repeated', async () => {
    const tenant = await Tenant.create(ALL);
    const { id } = await create(tenant);
    const message = { messageId: 'same', role: 'ROLE_USER', parts: [{ text: 'hi' }] };
    const send = async () =>
      fetch(`${url}/agents/echo`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${tenant.token}`,
          'content-type': 'application/json',
          'a2a-version': '1.0',
        },
        body: JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'SendMessage',
          params: { message, configuration: { returnImmediately: true } },
        }),
      });
    await Promise.all([send(), send(), send()]);
    const { rows } = await sql(`SELECT FROM push_configs WHERE webhook_id = '${id as string}'`);
    expect(rows).toHaveLength(1);
  });
});

describe('a test of a webhook', () => {
  let receiver: Server;
  let address: string;
  let status = 204;
  const received: { headers: IncomingHttpHeaders; body: string }[] = [];
  beforeAll(async () => {
    receiver = createServer(KEEPS_CONNECTIONS, (request, response) => {
      let body = '';
      request.on('data', (chunk) => (body += String(chunk)));
      request.on('end', () => {
        received.push({ headers: request.headers, body });
        response.writeHead(status, { location: 'https://elsewhere.example.com' }).end();
      });
    });
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    address = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  });
  afterAll(() => {
    receiver.closeAllConnections();
    receiver.close();
  });
  const verifies = (secret: unknown): boolean => {
    const { headers, body } = received.at(-1)!;
    try {
      new Webhook(secret as string).verify(body, headers as Record<string, string>);
      return true;
    } catch {
      return false;
    }
  };

  it('calls the receiver, signed with the secret, and returns its answer', async () => {
    const tenant = await Tenant.create(ALL);
    const { id, secret } = await create(tenant, { url: address, enabled: false });
    const { json } = await ask(tenant, 'POST', `/${id as string}/test`);
    expect(json).toEqual({ delivered: true, status: 204, error: null, duration_ms: expect.any(Number) });
    expect(JSON.parse(received.at(-1)!.body)).toMatchObject({
      type: 'webhook.test',
      data: { webhook_id: id },
    });
    expect(verifies(secret)).toBe(true);
    status = 302;
    const redirected = await ask(tenant, 'POST', `/${id as string}/test`);
    expect(redirected.json).toMatchObject({ delivered: false, status: 302 });
    status = 204;
  });

  it('is signed with the new secret and the one before, during the time of the rotation', async () => {
    const tenant = await Tenant.create(ALL);
    const { id, secret } = await create(tenant, { url: address });
    const path = `/${id as string}`;
    const second = (await ask(tenant, 'POST', `${path}/rotate`, {})).json;
    expect(second).toMatchObject({ id, secret: expect.stringMatching(/^whsec_/) });
    await ask(tenant, 'POST', `${path}/test`);
    expect([secret, second.secret].map(verifies)).toEqual([true, true]);
    const third = (await ask(tenant, 'POST', `${path}/rotate`, { overlap_seconds: 0 })).json;
    await ask(tenant, 'POST', `${path}/test`);
    expect([secret, second.secret, third.secret].map(verifies)).toEqual([false, false, true]);
  });

  it('has the reason why there is no answer, and no address', async () => {
    const tenant = await Tenant.create(ALL);
    const tried = async (to: string) => {
      const { id } = await create(tenant, { url: to });
      return (await ask(tenant, 'POST', `/${id as string}/test`)).json;
    };
    expect(await tried('http://127.0.0.1:9/')).toMatchObject({ delivered: false, status: null });
    const { id } = await create(tenant);
    await sql(`UPDATE webhooks SET url = 'http://10.0.0.1/' WHERE id = '${id as string}'`);
    const { error } = (await ask(tenant, 'POST', `/${id as string}/test`)).json;
    expect(error).toMatch(/10\.0\.0\.1/);
  });
});
