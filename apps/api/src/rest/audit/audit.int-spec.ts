import { type Scope, TaskState } from '@baton/a2a';
import { AuditStore, Database, PLATFORM, PLATFORM_ACTOR } from '@baton/database';
import { TokenService } from '@baton/identity';
import { randomUUID } from 'node:crypto';
import { REST_ROUTES } from '../../../../../test/support/api/routes.js';
import { app, ECHO, Tenant, url } from '../agents/catalog-api.fixture.js';

interface Answer {
  status: number;
  json: Record<string, unknown>;
  requestId: string | null;
}

/** A caller with a token of its own. */
class Caller {
  private constructor(
    readonly tenantId: string,
    readonly principal: string,
    readonly token: string,
  ) {}

  static async create(tenantId: string, ...scopes: Scope[]): Promise<Caller> {
    const input = { tenantId, name: 'walker', scopes, expiresAt: null };
    const { secret, token } = await app.get(TokenService, { strict: false }).issue(input, PLATFORM_ACTOR);
    return new Caller(tenantId, `token:${token.id}`, secret);
  }

  async ask(method: string, path: string, body?: unknown): Promise<Answer> {
    const response = await fetch(url + path, {
      method,
      headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const json = (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>;
    return { status: response.status, json, requestId: response.headers.get('x-request-id') };
  }

  async records(query = ''): Promise<Record<string, unknown>[]> {
    const { json } = await this.ask('GET', `/v1/audit?${query}`);
    return json.records as Record<string, unknown>[];
  }

  /** Sends a message to `echo`, which no worker executes here. */
  async send(message: object = {}) {
    const { json } = await this.ask('POST', '/agents/echo', {
      jsonrpc: '2.0',
      id: 1,
      method: 'SendMessage',
      params: {
        message: {
          messageId: randomUUID(),
          role: 'ROLE_USER',
          parts: [{ text: 'my secret words' }],
          ...message,
        },
        configuration: { returnImmediately: true },
      },
    });
    return json as { result?: { task: { id: string } }; error?: unknown };
  }
}

const sql = (text: string) => app.get(Database, { strict: false }).systemQuery({ text }, []);

let tenantId: string;
let admin: Caller;
let owner: Caller;

beforeAll(async () => {
  tenantId = (await Tenant.create()).id;
  admin = await Caller.create(tenantId, 'admin');
  owner = await Caller.create(tenantId, 'agents:call');
});

const taskOf = async (caller: Caller): Promise<string> => (await caller.send()).result?.task.id ?? '';

/** A task whose run waits for other code. */
async function parkedTask(): Promise<string> {
  const taskId = await taskOf(owner);
  await sql(`UPDATE runs SET state = 'suspended', parked_at = now() WHERE task_id = '${taskId}'`);
  return taskId;
}

/** A run that has used up its attempts. */
async function deadRun(): Promise<string> {
  const taskId = await taskOf(owner);
  const [run] = (await sql(`SELECT id::text FROM runs WHERE task_id = '${taskId}'`)) as { id: string }[];
  await sql(
    `INSERT INTO dead_letters (tenant_id, run_id, task_id, agent_id, reason, attempts)
     VALUES ('${tenantId}', '${run?.id ?? ''}', '${taskId}', 'echo', 'died', 3)`,
  );
  return run?.id ?? '';
}

async function failedTask(): Promise<string> {
  const taskId = await taskOf(owner);
  await sql(
    `UPDATE tasks SET state = ${TaskState.TASK_STATE_FAILED}, active_run_id = NULL WHERE id = '${taskId}'`,
  );
  return taskId;
}

/** A task with a push config that was given up. */
async function deadPush(): Promise<string> {
  const taskId = await taskOf(owner);
  await sql(
    `INSERT INTO push_configs (tenant_id, task_id, id, url, protocol, state, delivered_sequence, head_sequence, failing_since)
     VALUES ('${tenantId}', '${taskId}', 'a', 'https://a.example/my secret words', '1.0', 'dead', 0, 1, now())`,
  );
  return taskId;
}

const agent = async (): Promise<string> => {
  const slug = `agent-${randomUUID().slice(0, 8)}`;
  await admin.ask('POST', '/v1/agents', { ...ECHO, slug });
  return slug;
};
const withNext = async (): Promise<string> => {
  const slug = await agent();
  await admin.ask('PUT', `/v1/agents/${slug}/next`, { share: 5, agent: { ...ECHO, description: 'Next' } });
  return slug;
};
const schedule = async (): Promise<string> => {
  const name = `schedule-${randomUUID().slice(0, 8)}`;
  await admin.ask('POST', '/v1/schedules', { name, agent: 'echo', text: 'hi', cron: '0 8 * * *' });
  return name;
};

const token = async (): Promise<string> => {
  const { json } = await admin.ask('POST', '/v1/tokens', { name: 'ci' });
  return json.id as string;
};
const webhook = async (): Promise<string> => {
  const { json } = await admin.ask('POST', '/v1/webhooks', { url: 'http://127.0.0.1:9/', enabled: false });
  return json.id as string;
};
const UUID = /^[\da-f-]{36}$/;
const nameOf = (target: string | RegExp): unknown =>
  typeof target === 'string' ? target : expect.stringMatching(target);

interface Step {
  path: string;
  body?: unknown;
  action: string;
  target: string | RegExp;
}

/**
 * How each route that writes is called, and what the audit log then says. A route that is not in here fails the test
 * below: every change has its record.
 */
const WRITES: Readonly<Record<string, () => Promise<Step>>> = {
  'POST /v1/agents': async () => ({
    path: '/v1/agents',
    body: { ...ECHO, slug: 'new' },
    action: 'agent.create',
    target: 'new',
  }),
  'PUT /v1/agents/:agent': async () => {
    const target = await agent();
    const body = { ...ECHO, description: 'Another' };
    return { path: `/v1/agents/${target}`, body, action: 'agent.update', target };
  },
  'PATCH /v1/agents/:agent': async () => {
    const target = await agent();
    return { path: `/v1/agents/${target}`, body: { enabled: false }, action: 'agent.update', target };
  },
  'DELETE /v1/agents/:agent': async () => {
    const target = await agent();
    return { path: `/v1/agents/${target}`, action: 'agent.delete', target };
  },
  'DELETE /v1/agents/:agent/versions/:version': async () => {
    const target = await agent();
    await admin.ask('PATCH', `/v1/agents/${target}`, { description: 'Another' });
    return { path: `/v1/agents/${target}/versions/1`, action: 'agent.erase', target };
  },
  'PUT /v1/agents/:agent/next': async () => {
    const target = await agent();
    await admin.ask('PATCH', `/v1/agents/${target}`, { description: 'Another' });
    return {
      path: `/v1/agents/${target}/next`,
      body: { share: 5, version: 1 },
      action: 'agent.next',
      target,
    };
  },
  'POST /v1/agents/:agent/next/promote': async () => {
    const target = await withNext();
    return { path: `/v1/agents/${target}/next/promote`, action: 'agent.promote', target };
  },
  'DELETE /v1/agents/:agent/next': async () => {
    const target = await withNext();
    return { path: `/v1/agents/${target}/next`, action: 'agent.withdraw', target };
  },
  'POST /v1/agents/:agent/versions/:version/restore': async () => {
    const target = await agent();
    await admin.ask('PATCH', `/v1/agents/${target}`, { description: 'Another' });
    return { path: `/v1/agents/${target}/versions/1/restore`, action: 'agent.update', target };
  },
  'PUT /v1/secrets/:name': async () => ({
    path: '/v1/secrets/key',
    body: { value: 'the value itself' },
    action: 'secret.set',
    target: 'key',
  }),
  'PATCH /v1/secrets/:name': async () => {
    await admin.ask('PUT', '/v1/secrets/bound', { value: 'the value itself' });
    const body = { origins: ['https://api.example.com'] };
    return { path: '/v1/secrets/bound', body, action: 'secret.origins', target: 'bound' };
  },
  'DELETE /v1/secrets/:name': async () => {
    await admin.ask('PUT', '/v1/secrets/gone', { value: 'the value itself' });
    return { path: '/v1/secrets/gone', action: 'secret.delete', target: 'gone' };
  },
  'POST /v1/schedules': async () => ({
    path: '/v1/schedules',
    body: { name: 'daily', agent: 'echo', text: 'my secret words', cron: '0 8 * * *' },
    action: 'schedule.create',
    target: 'daily',
  }),
  'PATCH /v1/schedules/:id': async () => {
    const target = await schedule();
    return { path: `/v1/schedules/${target}`, body: { paused: true }, action: 'schedule.update', target };
  },
  'DELETE /v1/schedules/:id': async () => {
    const target = await schedule();
    return { path: `/v1/schedules/${target}`, action: 'schedule.delete', target };
  },
  'POST /v1/schedules/:id/run': async () => {
    const target = await schedule();
    return { path: `/v1/schedules/${target}/run`, action: 'schedule.run', target };
  },
  'PUT /v1/spending-caps': async () => ({
    path: '/v1/spending-caps',
    body: { of: 'tenant', period: 'day', amount: '5' },
    action: 'cap.set',
    target: UUID,
  }),
  'DELETE /v1/spending-caps/:id': async () => {
    const body = { of: 'tenant', period: 'week', amount: '5' };
    const { id } = (await admin.ask('PUT', '/v1/spending-caps', body)).json as { id: string };
    return { path: `/v1/spending-caps/${id}`, action: 'cap.delete', target: id };
  },
  'POST /v1/connections': async () => {
    const server = { name: 'desk', url: 'https://desk.example.com/mcp', oauth: {} };
    const agent = { ...ECHO, runtime: 'llm', config: { model: 'openai/gpt-5', tools: { mcp: [server] } } };
    await admin.ask('PUT', '/v1/agents/signs-in', agent);
    return { path: '/v1/connections', body: { agent: 'signs-in' }, action: 'connection.begin', target: UUID };
  },
  'DELETE /v1/connections/:id': async () => {
    const target = randomUUID();
    await sql(
      `INSERT INTO oauth_connections (tenant_id, id, resource, issuer, key_id, nonce, ciphertext, created_by)
       VALUES ('${tenantId}', '${target}', 'https://desk.example.com', 'https://as.example.com', 'k', '', '', 'token:1')`,
    );
    return { path: `/v1/connections/${target}`, action: 'connection.sign-out', target };
  },
  'POST /v1/webhooks': async () => ({
    path: '/v1/webhooks',
    body: { url: 'http://127.0.0.1:9/' },
    action: 'webhook.create',
    target: UUID,
  }),
  'PATCH /v1/webhooks/:id': async () => {
    const target = await webhook();
    return { path: `/v1/webhooks/${target}`, body: { states: null }, action: 'webhook.update', target };
  },
  'POST /v1/webhooks/:id/rotate': async () => {
    const target = await webhook();
    return { path: `/v1/webhooks/${target}/rotate`, body: {}, action: 'webhook.rotate', target };
  },
  'POST /v1/webhooks/:id/test': async () => {
    const target = await webhook();
    return { path: `/v1/webhooks/${target}/test`, action: 'webhook.test', target };
  },
  'DELETE /v1/webhooks/:id': async () => {
    const target = await webhook();
    return { path: `/v1/webhooks/${target}`, action: 'webhook.delete', target };
  },
  'POST /v1/tokens': async () => ({
    path: '/v1/tokens',
    body: { name: 'ci' },
    action: 'token.create',
    target: UUID,
  }),
  'PATCH /v1/tokens/:id': async () => {
    const target = await token();
    return { path: `/v1/tokens/${target}`, body: { agents: ['echo'] }, action: 'token.update', target };
  },
  'POST /v1/tokens/:id/rotate': async () => {
    const target = await token();
    return { path: `/v1/tokens/${target}/rotate`, body: {}, action: 'token.rotate', target };
  },
  'DELETE /v1/tokens/:id': async () => {
    const target = await token();
    return { path: `/v1/tokens/${target}?stop=true`, action: 'token.revoke', target };
  },
  'POST /v1/tasks/:id/cancel': async () => {
    const target = await taskOf(owner);
    return { path: `/v1/tasks/${target}/cancel`, action: 'task.cancel', target };
  },
  'POST /v1/requests/:id/cancel': async () => {
    const target = await taskOf(owner);
    return { path: `/v1/requests/${target}/cancel`, action: 'task.cancel', target };
  },
  'POST /v1/tasks/:id/resume': async () => {
    const target = await parkedTask();
    return { path: `/v1/tasks/${target}/resume`, action: 'task.resume', target };
  },
  'POST /v1/requests/:id/resume': async () => {
    const target = await parkedTask();
    return { path: `/v1/requests/${target}/resume`, action: 'task.resume', target };
  },
  'POST /v1/tasks/:id/continue': async () => {
    const target = await failedTask();
    return { path: `/v1/tasks/${target}/continue`, action: 'task.continue', target };
  },
  'POST /v1/requests/:id/continue': async () => {
    const target = await failedTask();
    return { path: `/v1/requests/${target}/continue`, action: 'task.continue', target };
  },
  'POST /v1/bulk-operations': async () => ({
    path: '/v1/bulk-operations',
    body: { action: 'cancel', filter: { error: 'none' } },
    action: 'bulk.begin',
    target: UUID,
  }),
  'POST /v1/bulk-operations/:id/cancel': async () => {
    const body = { action: 'cancel', filter: { error: 'none' } };
    const { json } = await admin.ask('POST', '/v1/bulk-operations', body);
    const { id: target } = json as { id: string };
    return { path: `/v1/bulk-operations/${target}/cancel`, action: 'bulk.cancel', target };
  },
  'POST /v1/dead-letters/:runId/redeliver': async () => {
    const target = await deadRun();
    return { path: `/v1/dead-letters/${target}/redeliver`, action: 'dead-letter.redeliver', target };
  },
  'POST /v1/dead-pushes/:id/redeliver': async () => {
    const target = await deadPush();
    return { path: `/v1/dead-pushes/${target}/redeliver`, action: 'push.redeliver', target };
  },
  'POST /v1/webhooks/:id/redeliver': async () => {
    const [id, target] = [await webhook(), await deadPush()];
    await sql(`UPDATE push_configs SET webhook_id = '${id}' WHERE task_id = '${target}'`);
    return { path: `/v1/webhooks/${id}/redeliver`, action: 'push.redeliver', target };
  },
};

/** They send a message. Its task says who sent it, and when. */
const SENDING = ['tasks', 'requests'].flatMap((name) => [
  `POST /v1/${name}/:id/send-again`,
  `POST /v1/${name}/:id/fork`,
]);

const writing = REST_ROUTES.filter(({ method }) => method !== 'GET')
  .map(({ method, path }) => `${method} ${path}`)
  .filter((route) => !SENDING.includes(route));

describe('every route that writes', () => {
  it('has a row in the table above', () => {
    expect([...writing].sort()).toEqual(Object.keys(WRITES).sort());
  });

  it.each(writing)('%s writes one record with the actor, the action and the request', async (route) => {
    const [method = ''] = route.split(' ');
    const { path, body, action, target } = (await WRITES[route]?.()) ?? { path: '', action: '', target: '' };
    const before = await admin.records('limit=100');
    const { status, requestId } = await admin.ask(method, path, body);
    expect(status).toBeGreaterThanOrEqual(200);
    expect(status).toBeLessThan(300);
    const known = new Set(before.map(({ id }) => id));
    const written = (await admin.records('limit=100')).filter(({ id }) => !known.has(id));
    expect(written).toEqual([
      {
        id: expect.any(String),
        at: expect.any(String),
        tenant_id: tenantId,
        actor: { kind: 'token', key: admin.principal, name: expect.stringMatching(/^walker \(baton_/) },
        source: 'loopback',
        request_id: requestId,
        action,
        outcome: 'ok',
        detail: expect.any(Object),
        target: { kind: expect.any(String), name: nameOf(target) },
      },
    ]);
    expect(JSON.stringify(written)).not.toMatch(/the value itself|my secret words|whsec_/);
  });

  it('writes none for a dry run, for what changes nothing, and for what is refused', async () => {
    const slug = await agent();
    const before = await admin.records();
    await admin.ask('PATCH', `/v1/agents/${slug}?dryRun=true`, { description: 'Another' });
    await admin.ask('PATCH', `/v1/agents/${slug}`, {});
    await admin.ask('DELETE', '/v1/secrets/none');
    await admin.ask('POST', '/v1/schedules', { name: 'BAD' });
    expect(await admin.records()).toEqual(before);
  });
});

describe('a task', () => {
  it('canceled by its owner is not recorded; by another caller it is, over A2A too', async () => {
    const cancel = (caller: Caller, id: string) =>
      caller.ask('POST', '/agents/echo', { jsonrpc: '2.0', id: 1, method: 'CancelTask', params: { id } });
    const [own, others] = [await taskOf(owner), await taskOf(owner)];
    expect((await cancel(owner, own)).json).toHaveProperty('result');
    expect((await cancel(admin, own)).json).toHaveProperty('error');
    expect((await cancel(admin, others)).json).toHaveProperty('result');
    const mine = await taskOf(admin);
    expect((await cancel(admin, mine)).json).toHaveProperty('result');
    const names = (await admin.records('action=task.cancel')).map(({ target }) => target);
    expect(names).toContainEqual({ kind: 'task', name: others });
    expect(names).not.toContainEqual({ kind: 'task', name: own });
    expect(names).not.toContainEqual({ kind: 'task', name: mine });
    const [record] = await admin.records('action=task.cancel&limit=1');
    expect(record).toMatchObject({ actor: { key: admin.principal }, detail: { owner: owner.principal } });
  });

  it('that waits for approval has a record of who answered it, and none of a refused answer', async () => {
    const taskId = await taskOf(owner);
    const approval = { callId: 'c-1', tool: 'pay', input: { card: 'my secret words' } };
    const status = {
      state: 'TASK_STATE_INPUT_REQUIRED',
      timestamp: new Date().toISOString(),
      message: { messageId: 'q', role: 'ROLE_AGENT', parts: [{ data: { approval } }] },
    };
    await sql(`UPDATE runs SET state = 'succeeded', finished_at = now() WHERE task_id = '${taskId}'`);
    await sql(
      `UPDATE tasks SET state = ${TaskState.TASK_STATE_INPUT_REQUIRED}, active_run_id = NULL,
         status = '${JSON.stringify(status)}' WHERE id = '${taskId}'`,
    );
    expect(await owner.send({ taskId })).toMatchObject({ error: expect.anything() });
    const service = app.get(TokenService, { strict: false });
    const revoked = await Caller.create(tenantId, 'admin');
    const verified = await service.verify(revoked.token);
    await service.revoke(tenantId, revoked.principal.slice('token:'.length), PLATFORM_ACTOR);
    // The call has begun before.
    const verify = jest.spyOn(service, 'verify').mockResolvedValueOnce(verified);
    expect(await revoked.send({ taskId, parts: [{ text: 'yes' }] })).toMatchObject({
      error: { message: 'the token has lost the right to approve: approve with another token' },
    });
    verify.mockRestore();
    expect(await admin.records('action=approval')).toEqual([]);
    expect(await admin.send({ taskId, parts: [{ text: 'yes' }] })).toHaveProperty('result');
    const records = await admin.records('action=approval');
    expect(records).toMatchObject([
      {
        action: 'approval.given',
        target: { kind: 'task', name: taskId },
        actor: { key: admin.principal },
        detail: { owner: owner.principal, calls: [{ callId: 'c-1', tool: 'pay' }] },
      },
    ]);
    expect(JSON.stringify(records)).not.toContain('my secret words');
  });
});

it('is not for a token with a list of agents: the records are of all agents', async () => {
  const { token } = await (await Tenant.create()).only(['echo'], 'admin', 'audit:read');
  const answer = await fetch(`${url}/v1/audit`, { headers: { authorization: `Bearer ${token}` } });
  expect([answer.status, await answer.json()]).toMatchObject([
    403,
    { error: { message: expect.stringContaining('the token has a list of agents') as string } },
  ]);
});

describe('a refused request', () => {
  const store = () => app.get(AuditStore, { strict: false });
  const refusedIn = async (query: { tenantId: string; action: string }) => {
    for (;;) {
      const records = await store().list({ ...query, limit: 10 });
      if (records.length > 0) return records;
    }
  };

  it('with a bad token is in the log of the platform, without the token', async () => {
    const secret = `baton_${'x'.repeat(43)}`;
    await fetch(`${url}/v1/agents`, { headers: { authorization: `Bearer ${secret}` } });
    await fetch(`${url}/v1/agents`);
    const records = await refusedIn({ tenantId: PLATFORM, action: 'signin.refused' });
    expect(records).toMatchObject([
      {
        actor: { kind: 'unknown', key: 'unknown' },
        source: 'loopback',
        outcome: 'refused',
        target: { kind: 'route', name: 'GET /v1/agents' },
        detail: { reason: 'the token is not known' },
      },
    ]);
    expect(JSON.stringify(records)).not.toContain('xxxx');
  });

  it('with a token that is no longer good is in the log of its tenant', async () => {
    const { id } = await Tenant.create();
    const tokens = app.get(TokenService, { strict: false });
    const given = { tenantId: id, name: 'old', scopes: ['admin' as const] };
    const revoked = await tokens.issue({ ...given, expiresAt: null }, PLATFORM_ACTOR);
    await tokens.revoke(id, revoked.token.id, PLATFORM_ACTOR);
    const expired = await tokens.issue({ ...given, expiresAt: new Date(Date.now() - 1) }, PLATFORM_ACTOR);
    const asked = await Promise.all(
      [revoked, expired].map(({ secret }) =>
        fetch(`${url}/v1/agents`, { headers: { authorization: `Bearer ${secret}` } }),
      ),
    );
    expect(asked.map(({ status }) => status)).toEqual([401, 401]);
    let records = await refusedIn({ tenantId: id, action: 'signin.refused' });
    while (records.length < 2) records = await refusedIn({ tenantId: id, action: 'signin.refused' });
    const reasons = {
      [revoked.token.id]: 'the token was revoked',
      [expired.token.id]: 'the token has expired',
    };
    const expected = Object.entries(reasons).map(([token, reason]) =>
      expect.objectContaining({
        actor: expect.objectContaining({ kind: 'token', key: `token:${token}` }) as object,
        source: 'loopback',
        outcome: 'refused',
        detail: { reason },
        target: { kind: 'route', name: 'GET /v1/agents' },
      }),
    );
    expect(records).toEqual(expect.arrayContaining(expected));
    expect(records).toHaveLength(2);
  });

  it('without the scope is in the log of its tenant', async () => {
    const { id } = await Tenant.create();
    const caller = await Caller.create(id, 'agents:call');
    expect((await caller.ask('DELETE', '/v1/agents/echo')).status).toBe(403);
    const records = await refusedIn({ tenantId: id, action: 'access.refused' });
    expect(records).toMatchObject([
      {
        actor: { key: caller.principal },
        outcome: 'refused',
        target: { kind: 'route', name: 'DELETE /v1/agents/:agent' },
        detail: { reason: 'the token lacks the scope agents:write' },
      },
    ]);
  });
});

describe('GET /v1/audit', () => {
  it('is for those with audit:read or admin, and shows nothing of others', async () => {
    const { id } = await Tenant.create();
    const auditor = await Caller.create(id, 'audit:read');
    expect((await auditor.records()).map(({ action }) => action)).toEqual([
      'token.create',
      'token.create',
      'tenant.create',
    ]);
    const refusals = async (): Promise<number> => (await admin.records('action=access.refused')).length;
    const before = await refusals();
    const { status, json } = await owner.ask('GET', '/v1/audit');
    expect([status, json]).toMatchObject([
      403,
      { error: { message: expect.stringContaining('audit:read') } },
    ]);
    // The record follows the answer. The next test reads all records twice.
    while ((await refusals()) === before);
  });

  it('is read page by page', async () => {
    const all = await admin.records('limit=100');
    const pages: unknown[] = [];
    for (let cursor: string | null = ''; cursor !== null;) {
      const { json } = await admin.ask('GET', `/v1/audit?limit=7${cursor === '' ? '' : `&cursor=${cursor}`}`);
      pages.push(...(json.records as unknown[]));
      cursor = json.next_cursor as string | null;
    }
    expect(pages.slice(0, all.length)).toEqual(all);
  });

  it.each([
    ['action=agent.paint', 'action'],
    ['action=agent&action=secret', 'action'],
    ['from=yesterday', 'from'],
    ['until=2026-01-01', 'until'],
    ['until=2026-13-01T00:00:00Z', 'until'],
    ['cursor=x', 'cursor'],
    ['limit=0', 'limit'],
  ])('refuses ?%s and names the field', async (query, field) => {
    const { status, json } = await admin.ask('GET', `/v1/audit?${query}`);
    expect([status, json]).toMatchObject([400, { error: { fields: [{ field }] } }]);
  });
});
