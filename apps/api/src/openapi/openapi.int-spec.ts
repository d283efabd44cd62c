import { SCOPES, TaskState } from '@baton/a2a';
import { loadEnvironment } from '@baton/config';
import { Database, WorkerStore } from '@baton/database';
import { OperatorTokens } from '@baton/identity';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { randomBytes, randomUUID } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { ApiModule } from '../api.module.js';
import { createFastifyAdapter, listen, prepareApi, shutDown } from '../server.js';
import { ApiDocument, isJson, type Json, type Operation } from '../../../../test/support/api/api-document.js';

const TENANT = 'acme';

let database: TestDatabase;
let app: NestFastifyApplication;
let tenant: Client;
let operator: Client;

interface Call {
  /** What stands for the names in the path. */
  names?: Record<string, string>;
  query?: string;
  body?: unknown;
  /** A body that is not JSON. */
  text?: string;
  headers?: Record<string, string>;
}

/** Calls an API by nothing but its document. Every answer must be as that says. */
class Client {
  /** Operations that were answered with success, each with its status. */
  readonly seen = new Set<string>();

  constructor(
    private readonly url: string,
    private readonly token: string,
    readonly document: ApiDocument,
  ) {}

  /** Calls the operation. A JSON body must be one that the document takes, and wrong ones must be refused. */
  async call(id: string, call: Call = {}): Promise<Json> {
    const operation = this.document.operation(id);
    if (call.body !== undefined) {
      expect([id, this.document.takes(operation, call.body)]).toEqual([id, true]);
      await this.refuses(operation, call, call.body as Json);
    }
    const { status, json } = await this.send(operation, call);
    expect([id, status < 300, json]).toEqual([id, true, json]);
    this.seen.add(`${id} ${String(status)}`);
    return json;
  }

  /** Calls the operation, which must be refused. */
  async refused(id: string, call: Call, status: number): Promise<Json> {
    const answer = await this.send(this.document.operation(id), call);
    expect([id, answer.status]).toEqual([id, status]);
    return answer.json;
  }

  /** Every success that the document describes, as in `seen`. */
  successes(): string[] {
    return this.document.operations.flatMap(({ id, spec }) =>
      Object.keys(spec.responses as Json)
        // Notifications of JSON-RPC are tested where it is: json-rpc/dispatch.spec.ts.
        .filter((status) => status.startsWith('2') && !(id.startsWith('callAgentAt') && status === '204'))
        .map((status) => `${id} ${status}`),
    );
  }

  /** Of each member of a body something that the document refuses: the API must refuse it, too, and name the member. */
  private async refuses(operation: Operation, call: Call, good: Json): Promise<void> {
    const { properties, additionalProperties } = this.document.bodySchema(operation)!;
    if (additionalProperties !== false) return;
    const wrong = Object.keys(properties as Json).map((name) => {
      const value = WRONG.find((each) => !this.document.takes(operation, { ...good, [name]: each }));
      if (value === undefined) throw new Error(`${operation.id}: the document takes anything as ${name}`);
      return { name, body: { ...good, [name]: value } };
    });
    for (const { name, body } of [...wrong, { name: 'nothing', body: { ...good, nothing: 1 } }]) {
      expect([operation.id, name, this.document.takes(operation, body)]).toEqual([operation.id, name, false]);
      const { status, json } = await this.send(operation, { ...call, body });
      const named = json.error.fields as { field: string }[];
      const fields = new Set(named.map(({ field }) => field.split(/[.[]/)[0]));
      expect([operation.id, body, status, fields]).toEqual([operation.id, body, 400, new Set([name])]);
    }
  }

  private async send(operation: Operation, { names = {}, query = '', body, text, headers }: Call) {
    const { id, method, path, spec } = operation;
    const types = Object.keys((spec.requestBody as Json | undefined)?.content ?? {});
    const sent = text ?? (body === undefined ? undefined : JSON.stringify(body));
    const cut = new AbortController();
    const response = await fetch(
      this.url + path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(names[name]!)) + query,
      {
        method,
        headers: {
          authorization: `Bearer ${this.token}`,
          ...(types[0] !== undefined && { 'content-type': types[0] }),
          ...headers,
        },
        ...(sent !== undefined && { body: sent }),
        signal: cut.signal,
      },
    );
    const type = response.headers.get('content-type');
    const isStream = type === 'text/event-stream';
    // A stream ends with its task.
    const received = isStream ? '' : await response.text();
    if (isStream) cut.abort();
    const json = (type && isJson(type) ? JSON.parse(received) : { received }) as Json;
    const faults = this.document.faultsOf(operation, response.status, type, json);
    expect([id, response.status, faults, json]).toEqual([id, response.status, undefined, json]);
    return { status: response.status, json };
  }
}

/** Of these, each member of a body takes all but one. */
const WRONG = [{ x: [null] }, [[]], -0.5, 'no, this is not it!', true];

beforeAll(async () => {
  database = await createDatabase();
  const environment = loadEnvironment({
    OUTBOUND_ALLOW: '127.0.0.1',
    DATABASE_URL: database.url,
    HOST: '127.0.0.1',
    PORT: '0',
    LOG_LEVEL: 'silent',
    API_GRACE_MS: '200',
    MANAGEMENT_PORT: '0',
    BATON_MASTER_KEY: randomBytes(32).toString('base64'),
  });
  app = await NestFactory.create(ApiModule.use(environment), createFastifyAdapter(environment), {
    bodyParser: false,
    logger: false,
    abortOnError: false,
  });
  prepareApi(app);
  const { url, managementUrl } = await listen(app);
  const { secret } = await app.get(OperatorTokens, { strict: false }).issue('ops', null);
  const documents = await Promise.all([
    ApiDocument.from(`${url}/v1/openapi.json`),
    ApiDocument.from(`${managementUrl!}/v1/admin/openapi.json`),
  ]);
  operator = new Client(managementUrl!, secret, documents[1]);
  await operator.call('createTenant', { body: { slug: TENANT } });
  const token = await operator.call('createToken', {
    names: { tenant: TENANT },
    body: { name: 'all', scopes: [...SCOPES], expires_at: null },
  });
  tenant = new Client(url, token.secret as string, documents[0]);
});
afterAll(async () => {
  await shutDown(app);
  await database.drop();
});

/** A task that waits for a worker. */
async function makeTask(): Promise<string> {
  const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'hi' }] };
  const answer = await tenant.call('callAgentAtA2aAgents', {
    names: { agent: 'echo' },
    body: {
      jsonrpc: '2.0',
      id: 1,
      method: 'SendMessage',
      params: { message, configuration: { returnImmediately: true } },
    },
    headers: { 'a2a-version': '1.0' },
  });
  return answer.result.task.id as string;
}

/** A task whose run waits for other code. */
async function makeParkedTask(): Promise<string> {
  const task = await makeTask();
  const parked = { reason: 'code-changed', problem: 'Step "b" is new', agent: 'echo', code: null, codes: [] };
  await app.get(Database, { strict: false }).systemQuery(
    {
      text: `UPDATE runs SET state = 'suspended', parked_at = now(), parked = '${JSON.stringify(parked)}'
             WHERE task_id = '${task}'`,
    },
    [],
  );
  return task;
}

/** A run that used up its attempts. */
async function makeDeadRun(): Promise<string> {
  const task = await makeTask();
  const [row] = await app.get(Database, { strict: false }).systemQuery(
    {
      text: `INSERT INTO dead_letters (tenant_id, run_id, task_id, agent_id, reason, attempts)
             SELECT tenant_id, id, task_id, 'echo', 'test', 3 FROM runs WHERE task_id = '${task}'
             RETURNING run_id::text AS id`,
    },
    [],
  );
  return row!.id as string;
}

/** A sign-in at a server. @returns its id */
async function signedIn(): Promise<string> {
  const text = `INSERT INTO oauth_connections (tenant_id, id, resource, issuer, key_id, nonce, ciphertext, created_by)
    SELECT id, gen_random_uuid(), 'https://desk.example.com/mcp', 'https://as.example.com', 'k', '', '', 'token:1'
    FROM tenants WHERE slug = '${TENANT}' RETURNING id::text`;
  const [row] = await app.get(Database, { strict: false }).systemQuery({ text }, []);
  return row!.id as string;
}

async function makeFailedTask(): Promise<string> {
  const task = await makeTask();
  const text = `UPDATE tasks SET state = ${TaskState.TASK_STATE_FAILED}, active_run_id = NULL WHERE id = '${task}'`;
  await app.get(Database, { strict: false }).systemQuery({ text }, []);
  return task;
}

/** Two push configs of a task that were given up. */
async function makeDeadPushes(): Promise<string> {
  const task = await makeTask();
  const text = `INSERT INTO push_configs (tenant_id, task_id, id, url, protocol, state, delivered_sequence, head_sequence,
      failing_since)
    SELECT tenant_id, id, unnest(ARRAY['a', 'b']), 'https://a.example/x', '1.0', 'dead', 0, 1, now() FROM tasks WHERE id = '${task}'`;
  await app.get(Database, { strict: false }).systemQuery({ text }, []);
  return task;
}

describe('requests and answers of the API match its document', () => {
  it('of agents', async () => {
    const names = { agent: 'mine' };
    const body = { name: 'Mine', description: 'Says it again', runtime: 'echo' };
    await tenant.call('createAgent', { body, query: '?dryRun=true' });
    await tenant.call('createAgent', { body: { ...body, slug: 'mine' } });
    await tenant.refused('createAgent', { body: { ...body, slug: 'mine' } }, 409);
    await tenant.refused('createAgent', { body: { ...body, tenants: [TENANT] } }, 400);
    await tenant.call('putAgent', { names, body: { ...body, description: 'New' } });
    await tenant.call('putAgent', { names: { agent: 'other' }, body });
    await tenant.call('patchAgent', { names, body: { description: 'Newer' } });
    await tenant.refused('putAgent', { names, body, headers: { 'if-match': '"old"' } }, 412);
    await tenant.call('getAgent', { names });
    await tenant.call('getAgent', { names: { agent: 'echo' } });
    await tenant.call('listAgents', { query: '?limit=2' });
    await tenant.call('getAgentCard', { names });
    await tenant.call('listAgentVersions', { names });
    await tenant.call('listOpenVersions', { names });
    await tenant.call('getAgentVersion', { names: { ...names, version: '1' } });
    await tenant.call('restoreAgentVersion', { names: { ...names, version: '1' } });
    const next = { ...body, description: 'Next' };
    const labeled = await tenant.call('setNextVersion', { names, body: { share: 10, agent: next } });
    expect(labeled).toMatchObject({ next: { share: 10, failures: 5 } });
    await tenant.call('listAgents', { query: '?limit=2' });
    await tenant.refused('setNextVersion', { names, body: { share: 101 } }, 400);
    await tenant.call('promoteNextVersion', { names });
    await tenant.refused('promoteNextVersion', { names }, 409);
    await tenant.call('setNextVersion', { names, body: { share: 20, version: 1 } });
    await tenant.call('withdrawNextVersion', { names });
    await tenant.call('eraseAgentVersion', { names: { ...names, version: '1' } });
    await tenant.call('getAgentVersion', { names: { ...names, version: '1' } });
    await tenant.refused('getAgentVersion', { names: { ...names, version: 'x' } }, 400);
    await tenant.call('deleteAgent', { names });
    await tenant.refused('getAgent', { names }, 404);
  });

  it('of secrets', async () => {
    const names = { name: 'crm' };
    await tenant.call('setSecret', { names, body: { value: 'x', origins: ['https://crm.example.com'] } });
    await tenant.call('changeSecret', { names, body: { origins: [] } });
    await tenant.call('listSecrets');
    await tenant.call('deleteSecret', { names });
    await tenant.refused('deleteSecret', { names }, 404);
  });

  it('of sign-ins at servers', async () => {
    const mcp = [{ name: 'desk', url: 'https://desk.example.com/mcp', oauth: {} }];
    const config = { model: 'openai/gpt-5', tools: { mcp } };
    const agent = { name: 'Desk', description: 'Signs in', runtime: 'llm', config };
    await tenant.call('putAgent', { names: { agent: 'desk' }, body: agent });
    await tenant.call('beginConnection', { body: { agent: 'desk', server: 'desk' } });
    await tenant.refused('beginConnection', { body: { agent: 'echo' } }, 400);
    const id = await signedIn();
    expect(await tenant.call('listConnections')).toMatchObject({ connections: [{ id, state: 'signed-in' }] });
    await tenant.call('deleteConnection', { names: { id } });
    await tenant.refused('deleteConnection', { names: { id } }, 404);
    await tenant.call('deleteAgent', { names: { agent: 'desk' } });
  });

  it('of schedules', async () => {
    const names = { id: 'report' };
    const body = { name: 'report', agent: 'echo', cron: '0 8 * * *', text: 'go' };
    await tenant.call('createSchedule', { body });
    await tenant.call('runSchedule', { names });
    await tenant.call('changeSchedule', { names, body: { paused: true } });
    await tenant.call('getSchedule', { names });
    await tenant.call('listSchedules');
    await tenant.call('deleteSchedule', { names });
  });

  it('of tokens', async () => {
    const { id } = await tenant.call('createToken', { body: { name: 'ci', agents: ['echo'] } });
    const names = { id: id as string };
    await tenant.call('changeToken', { names, body: { requests_per_second: 5 } });
    await tenant.call('rotateToken', { names, body: { overlap_seconds: 0 } });
    await tenant.call('getToken', { names });
    await tenant.call('listTokens', { query: '?limit=1' });
    await tenant.call('revokeToken', { names, query: '?stop=true' });
    await tenant.refused('changeToken', { names, body: { name: 'x' } }, 409);
  });

  it('of spending caps', async () => {
    const made = await tenant.call('setSpendingCap', {
      body: { of: 'agent', subject: 'echo', period: 'week', amount: '2.5' },
    });
    await tenant.call('listEffects', { query: '?outcome=unknown' });
    await tenant.refused('listEffects', { query: '?outcome=lost' }, 400);
    await tenant.call('listSpendingCaps');
    await tenant.refused('setSpendingCap', { body: { of: 'tenant', period: 'day', amount: '-1' } }, 400);
    await tenant.call('deleteSpendingCap', { names: { id: made.id as string } });
    await tenant.refused('deleteSpendingCap', { names: { id: made.id as string } }, 404);
  });
  it('of webhooks', async () => {
    const made = await tenant.call('createWebhook', { body: { url: 'https://1.1.1.1/baton' } });
    const names = { id: made.id as string };
    await tenant.call('changeWebhook', { names, body: { states: ['completed'], agents: ['echo'] } });
    await tenant.call('rotateWebhookSecret', { names, body: { overlap_seconds: 0 } });
    await tenant.call('getWebhook', { names });
    await tenant.call('listWebhooks', { query: '?limit=1' });
    await tenant.refused('changeWebhook', { names, body: { url: 'http://10.0.0.1/' } }, 400);
    // This port is closed.
    await tenant.call('changeWebhook', { names, body: { url: 'http://127.0.0.1:9/' } });
    await tenant.call('testWebhook', { names });
    await tenant.call('listWebhookDeliveries', { names, query: '?limit=1' });
    await tenant.call('redeliverWebhook', { names });
    await tenant.call('deleteWebhook', { names });
    await tenant.refused('testWebhook', { names }, 404);
  });

  it('of operations on many tasks', async () => {
    const body = { action: 'cancel', filter: { agent: 'echo', error: 'none' } };
    await tenant.call('beginBulkOperation', { body: { ...body, dry_run: true } });
    const { id } = await tenant.call('beginBulkOperation', { body });
    const names = { id: id as string };
    await tenant.call('listBulkOperations', { query: '?limit=1' });
    await tenant.call('getBulkOperation', { names });
    await tenant.call('cancelBulkOperation', { names });
    await tenant.refused('cancelBulkOperation', { names }, 409);
  });

  it('of tasks', async () => {
    const task = { id: await makeTask() };
    await tenant.call('listTasks');
    await tenant.call('listTasks', { query: '?answerable=true' });
    await tenant.call('listTasks', { query: '?counts=true' });
    await tenant.call('getTask', { names: task });
    await tenant.call('listConsoleLines', { names: task });
    await tenant.call('listEventTimes', { names: task });
    await tenant.call('getTrace', { names: task });
    await tenant.call('getCall', { names: { ...task, entry: '1' } });
    await tenant.call('getCallRecord', { names: { ...task, entry: '1' } });
    await tenant.call('listArtifacts', { names: task });
    await tenant.call('getReplay', { names: task });
    await tenant.call('streamEvents', { names: task });
    await tenant.refused('resumeTask', { names: task }, 409);
    const parked = { id: await makeParkedTask() };
    await tenant.call('getTask', { names: parked });
    await tenant.call('listTasks', { query: '?parked=true' });
    await tenant.call('resumeTask', { names: parked });
    await tenant.call('cancelTask', { names: task });
    expect(await tenant.refused('cancelTask', { names: task }, 404)).toMatchObject({ cancelled: false });
    await tenant.refused('listTasks', { query: '?limit=1000' }, 400);
    await tenant.call('sendTaskAgain', { names: task });
    await tenant.call('continueTask', { names: { id: await makeFailedTask() } });
    await tenant.refused('continueTask', { names: task }, 400);
    await tenant.call('forkTask', { names: task, body: { text: 'other' } });
    await tenant.call('forkTask', { names: task, body: { dry_run: true } });
    await tenant.refused('forkTask', { names: task, body: { at: 99 } }, 400);
    await tenant.call('getUsage', { query: '?by=agent' });
    const { limits } = (await tenant.call('getLimits')) as { limits: unknown[] };
    expect(limits).toContainEqual({
      name: 'secrets',
      counts: 'secrets',
      max: 1_000,
      used: expect.any(Number) as number,
    });
    expect(limits).toContainEqual(expect.objectContaining({ name: 'eventBytes', used: null }));
    const runId = await makeDeadRun();
    await tenant.call('listDeadLetters');
    await tenant.call('redeliverDeadLetter', { names: { runId } });
    await tenant.refused('redeliverDeadLetter', { names: { runId } }, 400);
    await tenant.call('listDeadLetters');
    const dead = { id: await makeDeadPushes() };
    const { next_cursor: cursor } = await tenant.call('listDeadPushes', { query: '?limit=1' });
    await tenant.call('listDeadPushes', { query: `?limit=1&cursor=${cursor as string}` });
    await tenant.refused('listDeadPushes', { query: '?cursor=eA' }, 400);
    await tenant.call('redeliverDeadPushes', { names: dead, query: '?config=a' });
    await tenant.refused('redeliverDeadPushes', { names: { id: 'x' } }, 404);
    for (const id of ['callAgentAtAgentsA2a', 'callAgentAtAgentSystemsA2a']) {
      const [method] = tenant.document.bodySchema(tenant.document.operation(id))!.properties.method
        .enum as string[];
      const body = { jsonrpc: '2.0', id: 1, method, params: {} };
      expect(await tenant.call(id, { names: { agent: 'echo' }, body })).toHaveProperty('error.code');
    }
    await tenant.call('listAuditRecords', { query: '?action=token&limit=2' });
    await tenant.call('whoami');
    await tenant.call('getAgentSchema');
    await tenant.call('getOpenApi');
  });

  it('of operators', async () => {
    const names = { tenant: TENANT };
    await operator.call('listTenants');
    await operator.call('getTenant', { names });
    await operator.call('changeTenant', {
      names,
      body: { default_agent: 'echo', egress_deny: ['x.example'] },
    });
    await operator.call('changeTenantLimits', {
      names,
      body: { openStreams: 5, runsAtOnce: null, weight: 'default' },
    });
    await operator.call('getTenantLimits', { names });
    const cap = { ...names, period: 'month' };
    await operator.call('setTenantSpendingCap', { names: cap, body: { amount: '500' } });
    await operator.call('listTenantSpendingCaps', { names });
    await operator.call('deleteTenantSpendingCap', { names: cap });
    await operator.call('getTenantUsage', { names });
    await operator.call('listTokens', { names });
    const issued = await operator.call('createToken', {
      names,
      body: { name: 'ci', scopes: ['agents:call'] },
    });
    const token = { ...names, token: issued.prefix as string };
    await operator.call('changeToken', { names: token, body: { agents: ['echo'] } });
    const { id } = await operator.call('rotateToken', { names: token, body: { expires_at: null } });
    await operator.call('getToken', { names: { ...names, token: id as string } });
    await operator.call('revokeToken', { names: { ...names, token: id as string }, query: '?stop=true' });
    const issuer = { issuer: 'https://id.example.com', audience: 'baton', check: false };
    const added = await operator.call('addIssuer', { names, body: issuer });
    await operator.call('listIssuers', { names });
    await operator.call('listAllIssuers');
    await operator.call('removeIssuer', { names: { ...names, id: added.id as string } });
    const host = { host: 'agents.example.com' };
    await operator.call('bindHost', { names: host, body: { tenant: TENANT, agent: 'echo' } });
    await operator.call('listHosts');
    await operator.call('unbindHost', { names: host });
    const failure = { slug: 'helper', file: 'helper/index.mjs', line: null, reason: 'boom', tenants: null };
    await app
      .get(WorkerStore, { strict: false })
      .reportFailures({ id: randomUUID(), host: 'w', pid: 7, concurrency: 4 }, [failure]);
    await operator.call('listWorkers');
    await operator.call('getQueue');
    await operator.call('listTenantsUsage');
    await operator.call('whoami');
    const found = { id: await makeTask() };
    await operator.call('getTask', { names: { ...names, ...found } });
    await operator.call('findTask', { names: found });
    const agent = { name: 'Second', description: 'Says it again', runtime: 'echo', slug: 'second' };
    await operator.call('createAgent', { names, body: agent });
    await operator.call('listAgents', { names });
    await operator.call('deleteAgent', { names: { ...names, agent: 'second' } });
    const secret = { ...names, name: 'crm' };
    const origins = ['https://crm.example.com'];
    await operator.call('setSecret', { names: secret, body: { value: 'x', origins } });
    await operator.call('changeSecret', { names: secret, body: { origins: [] } });
    await operator.call('listSecrets', { names });
    await operator.call('deleteSecret', { names: secret });
    await operator.call('listAuditRecords', { query: `?tenant=${TENANT}&limit=2` });
    await operator.call('exportAuditRecords');
    const runId = await makeDeadRun();
    await operator.call('listDeadLetters', { query: '?limit=1' });
    await operator.call('getDeadLetter', { names: { runId } });
    await operator.call('redeliverDeadLetter', { names: { runId } });
    const dead = { id: await makeDeadPushes() };
    await operator.call('listDeadPushes', { query: '?limit=1' });
    await operator.call('redeliverDeadPushes', { names: dead });
    await operator.refused('redeliverDeadPushes', { names: dead }, 404);
    await operator.call('listOperatorTokens');
    const other = await app.get(OperatorTokens, { strict: false }).issue('other', null);
    await operator.call('revokeOperatorToken', { names: { token: other.token.id } });
    await operator.refused('revokeOperatorToken', { names: { token: 'nobody' } }, 404);
    await operator.call('getOpenApi');
    const { received } = await operator.call('exportTenant', { names, query: '?skip_running=true' });
    await operator.call('importTenant', { names: { tenant: 'copy' }, text: received as string });
    await operator.call('suspendTenant', { names, body: { reason: 'unpaid', stop: true } });
    await tenant.refused('listAgents', {}, 403);
    await operator.call('resumeTenant', { names });
    await operator.refused('deleteTenant', { names, query: '?confirm=other' }, 400);
    await operator.call('deleteTenant', { names, query: `?confirm=${TENANT}` });
    await tenant.refused('listAgents', {}, 401);
    await operator.refused('getTenant', { names }, 404);
  });

  it('and every success that it describes has been seen', () => {
    for (const client of [tenant, operator])
      expect([...client.seen].sort()).toEqual(client.successes().sort());
  });
});
