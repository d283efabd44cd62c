import { rpcPaths } from '@baton/a2a';
import { Environment } from '@baton/config';
import { CatalogClient } from '@baton/database';
import { randomUUID } from 'node:crypto';
import { app, ECHO, Tenant, url } from './catalog-api.fixture.js';

type Json = Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- tests look at the wire
interface Answer {
  status: number;
  text: string;
  json: Json;
}

let tenant: Tenant;
/** For its token only the agent `open` exists. */
let limited: Tenant;

beforeAll(async () => {
  tenant = await Tenant.create(['admin']);
  for (const slug of ['open', 'shut']) {
    expect((await tenant.ask('PUT', `/${slug}`, ECHO)).status).toBe(201);
  }
  limited = await tenant.only(['open'], 'admin');
});

async function ask({ token }: Tenant, method: string, path: string, body?: object): Promise<Answer> {
  const headers = {
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    'a2a-version': '1.0',
  };
  const accept = { accept: 'application/json, text/event-stream' };
  const sent = body && { body: JSON.stringify(body) };
  const response = await fetch(url + path, { method, headers: { ...headers, ...accept }, ...sent });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json');
  return { status: response.status, text, json: isJson ? (JSON.parse(text) as Json) : {} };
}

const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });
const send = (metadata?: object) =>
  rpc('SendMessage', {
    message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hi' }] },
    configuration: { returnImmediately: true },
    ...(metadata && { metadata }),
  });

/** A task of an agent, made by a token. */
async function taskOf(agent: string, by = tenant): Promise<string> {
  const { json } = await ask(by, 'POST', `/agents/${agent}`, send());
  return json.result.task.id as string;
}

/** What two requests are answered with, with their names made equal. */
async function alike(requests: readonly (readonly [string, string, object?])[], names: readonly string[]) {
  const [one, other] = await Promise.all(
    requests.map(async ([method, path, body]) => {
      const { status, text } = await ask(limited, method, path, body);
      return { status, text: names.reduce((sum, name) => sum.replaceAll(name, 'NAME'), text) };
    }),
  );
  expect(one).toEqual(other);
  return one!;
}

const UNKNOWN = '0198c0de-0000-7000-8000-000000000000';

describe('a token with a list of agents', () => {
  it('calls and reads those agents as any other token does', async () => {
    const id = await taskOf('open', limited);
    expect((await ask(limited, 'POST', '/agents/open', rpc('GetTask', { id }))).json.result).toMatchObject({
      id,
    });
    expect((await ask(limited, 'GET', `/v1/tasks/${id}`)).status).toBe(200);
    expect((await ask(limited, 'GET', '/agents/open/.well-known/agent-card.json')).status).toBe(200);
    const theirs = await taskOf('open');
    expect((await ask(limited, 'POST', `/v1/tasks/${theirs}/cancel`)).status).toBe(200);
  });

  it.each(rpcPaths().map(({ path }) => path))('finds no other agent at %s', async (path) => {
    const at = (agent: string): [string, string, object] => [
      'POST',
      path.replace(':agent', agent),
      send(path.includes(':agent') ? undefined : { agent }),
    ];
    const { text } = await alike([at('shut'), at('none')], ['shut', 'none']);
    expect(text).toMatch(/[Aa]gent/);
    expect(JSON.parse(text)).toHaveProperty('error');
  });

  it.each<[string, string, object?]>([
    ['GET', '/v1/agents/<agent>'],
    ['PUT', '/v1/agents/<agent>', ECHO],
    ['PATCH', '/v1/agents/<agent>', { description: 'mine' }],
    ['DELETE', '/v1/agents/<agent>'],
    ['GET', '/v1/agents/<agent>/versions'],
    ['GET', '/v1/agents/<agent>/versions/1'],
    ['POST', '/v1/agents/<agent>/versions/1/restore'],
    ['DELETE', '/v1/agents/<agent>/versions/1'],
    ['GET', '/agents/<agent>/.well-known/agent-card.json'],
    ['GET', '/agents/<agent>/.well-known/agent.json'],
    ['GET', '/v1/a2a/agents/<agent>/agent-card.json'],
  ])('is answered by %s %s as for an agent that does not exist', async (method, path, body) => {
    const at = (agent: string) => [method, path.replace('<agent>', agent), body] as const;
    const { status } = await alike([at('shut'), at('none')], ['shut', 'none']);
    expect(status).toBe(method === 'PUT' ? 403 : 404);
    expect((await ask(tenant, 'GET', '/v1/agents/shut')).json).toMatchObject({ version: 1, enabled: true });
  });

  it('makes no agent outside of its list', async () => {
    const { status, json } = await ask(limited, 'POST', '/v1/agents', { ...ECHO, slug: 'fresh' });
    expect([status, json.error.message]).toEqual([403, 'the token may write only the agents open']);
  });

  it('lists its agents, and their tasks and schedules, alone', async () => {
    const [mine, theirs] = [await taskOf('open'), await taskOf('shut')];
    for (const agent of ['open', 'shut']) {
      const schedule = { name: `of-${agent}`, agent, cron: '@yearly', text: 'hi' };
      expect((await ask(tenant, 'POST', '/v1/schedules', schedule)).status).toBe(201);
    }
    const slugs = (await ask(limited, 'GET', '/v1/agents')).json.agents.map(({ slug }: Json) => slug);
    expect(slugs).toEqual(['open']);
    const tasks = (await ask(limited, 'GET', '/v1/tasks')).json.tasks as Json[];
    expect(tasks.map(({ task_id: id }) => id)).toContain(mine);
    expect(tasks.map(({ task_id: id }) => id)).not.toContain(theirs);
    const all = (await ask(tenant, 'GET', '/v1/tasks')).json.tasks as Json[];
    expect(all.map(({ task_id: id }) => id)).toEqual(expect.arrayContaining([mine, theirs]));
    const { schedules } = (await ask(limited, 'GET', '/v1/schedules')).json as { schedules: Json[] };
    expect(schedules.map(({ name }) => name)).toEqual(['of-open']);
  });

  it.each<[string, string, object?]>([
    ['GET', '/v1/schedules/<name>'],
    ['PATCH', '/v1/schedules/<name>', { paused: true }],
    ['POST', '/v1/schedules/<name>/run'],
    ['DELETE', '/v1/schedules/<name>'],
  ])('finds no schedule of another agent by %s %s', async (method, path, body) => {
    const at = (name: string) => [method, path.replace('<name>', name), body] as const;
    expect((await alike([at('of-shut'), at('of-none')], ['of-shut', 'of-none'])).status).toBe(404);
  });

  it('can schedule nothing for another agent', async () => {
    const at = (agent: string) =>
      ['POST', '/v1/schedules', { name: 'x', agent, cron: '@yearly', text: 'hi' }] as const;
    expect((await alike([at('shut'), at('none')], ['shut', 'none'])).status).toBe(400);
    const moved = await ask(limited, 'PATCH', '/v1/schedules/of-open', { agent: 'shut' });
    expect(moved.status).toBe(400);
  });

  it.each<[string, string, ((id: string) => object)?]>([
    ['GET', '/v1/tasks/<id>'],
    ['GET', '/v1/tasks/<id>/artifacts'],
    ['GET', '/v1/tasks/<id>/events'],
    ['POST', '/v1/tasks/<id>/cancel'],
    ['POST', '/agents/open', (id) => rpc('GetTask', { id })],
    ['POST', '/agents/open', (id) => rpc('CancelTask', { id })],
    ['POST', '/agents/open', (id) => rpc('SubscribeToTask', { id })],
    ['POST', '/a2a', (id) => rpc('tasks/get', { id })],
    ['POST', '/a2a', (id) => rpc('tasks/cancel', { id })],
    ['POST', '/', (id) => rpc('tasks/get', { id })],
    ['POST', '/', (id) => rpc('tasks/cancel', { id })],
  ])('finds no task of another agent by %s %s %#', async (method, path, body) => {
    // It has made the task itself, when its list was another.
    const wide = await tenant.only(['open', 'shut'], 'admin');
    const id = await taskOf('shut', wide);
    const at = (name: string) => [method, path.replace('<id>', name), body?.(name)] as const;
    const { text } = await alike([at(id), at(UNKNOWN)], [id, UNKNOWN]);
    expect(text).toMatch(/not found|cancelled":false|reason/i);
    const state = (await ask(tenant, 'GET', `/v1/tasks/${id}`)).json.state as string;
    expect(state).not.toMatch(/cancel/i);
  });

  it('finds no dead letter of another agent', async () => {
    const catalog = new CatalogClient(databaseUrl());
    const [mine, theirs] = [await taskOf('open'), await taskOf('shut')];
    const rows = await catalog.prisma.$queryRaw<{ task: string; run: string }[]>`
      INSERT INTO dead_letters (tenant_id, run_id, task_id, agent_id, reason, attempts)
      SELECT r.tenant_id, r.id, r.task_id, t.agent_id, 'died', 3 FROM runs r
      JOIN tasks t ON t.tenant_id = r.tenant_id AND t.id = r.task_id
      WHERE r.task_id IN (${mine}::uuid, ${theirs}::uuid) RETURNING task_id AS task, run_id AS run`;
    await catalog.close();
    const listed = (await ask(limited, 'GET', '/v1/dead-letters')).json.dead_letters as Json[];
    expect(listed.map(({ task_id: id }) => id)).toEqual([mine]);
    const run = rows.find(({ task }) => task === theirs)!.run;
    const at = (id: string) => ['POST', `/v1/dead-letters/${id}/redeliver`] as const;
    expect((await alike([at(run), at(UNKNOWN)], [run, UNKNOWN])).status).toBe(404);
  });
});

const databaseUrl = (): string => app.get(Environment).databaseUrl;
