import { randomBytes, randomUUID } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { DRIVERS } from '../support/redis.js';
import { Stack } from '../support/stack.js';
import { type Answer, exchange, type Headers, type Wired, type WireRequest } from '../support/wire.js';
import { buryRun, expireToken, giveUpPush, makeConnection, revokeToken, sql } from './operator-hands.js';

/** Part of all texts and names of the owner: no other caller may ever read it. */
export const MARK = 'owner-secret';

/** An id of the owner's, and one of the same form of nothing. */
export interface Twins {
  owned: string;
  unknown: string;
}

/** What the owner has, by what it is called. */
export interface Owned {
  waitingTask: string;
  endedTask: string;
  workingTask: string;
  contextId: string;
  agentSlug: string;
  agentId: string;
  installedSlug: string;
  installedId: string;
  pageToken: string;
  deadRun: string;
  secretName: string;
  scheduleId: string;
  scheduleName: string;
  tokenId: string;
  webhookId: string;
  connectionId: string;
  capId: string;
  bulkId: string;
  tenantSlug: string;
  tenantId: string;
  host: string;
}

const LIMITED_AGENT =
  'name: Limited owner-secret\ndescription: owner-secret\nruntime: executor\ntenants: [tenant-1]\n';

/** Two tenants on a real stack of two API processes: an owner with things of every kind, and a stranger. */
export class World {
  readonly tokens = {
    owner: '',
    stranger: '',
    revoked: '',
    expired: '',
    ownerReader: '',
    strangerReader: '',
  };
  owned!: Owned;
  readonly slugs = { owner: '', stranger: '' };
  private calls = 0;
  private readonly connections = new http.Agent({ keepAlive: true });

  private constructor(
    readonly stack: Stack,
    private readonly folder: string,
  ) {}

  static async start(): Promise<World> {
    const folder = mkdtempSync(join(tmpdir(), 'baton-isolation-'));
    const agents = join(folder, 'agents');
    cpSync(join(__dirname, '../agents'), agents, { recursive: true });
    cpSync(join(agents, 'recall'), join(agents, 'limited'), { recursive: true });
    writeFileSync(join(agents, 'limited/agent.yaml'), LIMITED_AGENT);
    writeFileSync(join(folder, 'witness'), '');
    const env = {
      BATON_AGENTS_DIR: agents,
      WITNESS_FILE: join(folder, 'witness'),
      EXECUTOR_WRITE: folder,
      BATON_MASTER_KEY: randomBytes(32).toString('base64'),
      // What an answer has of its request alone, and of the time it takes.
      PUBLIC_URL: 'http://127.0.0.1:0',
      SSE_HEARTBEAT_MS: '60000',
    };
    mkdirSync(agents, { recursive: true });
    const world = new World(await Stack.start({ driver: DRIVERS[0]!, apis: 2, env }), folder);
    try {
      await world.makeTenants();
      await world.makeThings();
      return world;
    } catch (error) {
      await world.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.connections.destroy();
    await this.stack.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Send a request to one API process after the other, or to a certain one. */
  send(request: WireRequest, api = this.calls++ % 2): Promise<Answer> {
    return exchange(this.stack.apis[api]!.url, request, undefined, this.connections);
  }

  /** A JSON-RPC call that must succeed, with a token. */
  async call(token: string, method: string, params: object, path = '/agents/echo'): Promise<Answer['json']> {
    const headers = callHeaders(token);
    const answer = await this.send({ method: 'POST', path, headers, body: rpc(method, params) });
    const { result } = answer.json as { result?: object };
    if (!result) throw new Error(`${method} at ${path}: ${answer.text}`);
    return result;
  }

  /** The tasks whose cancel has reached an agent. */
  witnessed(): string {
    return readFileSync(join(this.folder, 'witness'), 'utf8');
  }

  /**
   * Every row of a tenant in every table, as text. Left out is what a worker changes in its run, when a token was used, and
   * the records of refused callers in the audit log.
   */
  async rowsOf(tenantId: string): Promise<Map<string, string[]>> {
    const client = new Client({ connectionString: this.stack.database.url });
    await client.connect();
    try {
      await client.query(`SET baton.tenant = '${tenantId}'`);
      const { rows: tables } = await client.query<{ name: string }>(
        `SELECT table_name AS name FROM information_schema.columns
         WHERE table_schema = 'public' AND column_name = 'tenant_id' ORDER BY 1`,
      );
      const dump = new Map<string, string[]>();
      for (const { name } of tables) {
        const { rows } = await client.query<{ row: string }>(
          `SELECT row_to_json(t)::text AS row FROM ${name} t ORDER BY 1`,
        );
        const refusals = name === 'audit_records' ? /"action":"(access|signin)\.refused"/ : undefined;
        dump.set(
          name,
          rows
            .filter(({ row }) => !refusals?.test(row))
            .map(({ row }) => row.replace(/"(lease_expires_at|enqueued_at|last_used_at)":[^,}]*/g, '')),
        );
      }
      return dump;
    } finally {
      await client.end();
    }
  }

  private async makeTenants(): Promise<void> {
    const { stack, slugs, tokens } = this;
    const [owner, stranger] = await Promise.all([stack.createTenant('admin'), stack.createTenant('admin')]);
    Object.assign(slugs, { owner: owner.slug, stranger: stranger.slug });
    tokens.owner = owner.token;
    tokens.stranger = stranger.token;
    const create = (slug: string, ...scopes: string[]) => stack.createToken(slug, ...scopes);
    [tokens.revoked, tokens.ownerReader, tokens.strangerReader, tokens.expired] = await Promise.all([
      create(owner.slug, 'admin'),
      create(owner.slug, 'tasks:read'),
      create(stranger.slug, 'tasks:read'),
      create(owner.slug, 'admin'),
      ...[owner, stranger].map(({ slug }) => stack.baton('tenants', 'set', slug, '--default-agent', 'echo')),
    ]);
    await revokeToken(stack, owner.slug, tokens.revoked);
    await expireToken(stack, tokens.expired);
  }

  private async makeThings(): Promise<void> {
    const { stack, tokens, slugs } = this;
    const file = join(this.folder, 'agent.yaml');
    writeFileSync(file, JSON.stringify({ name: `Private ${MARK}`, description: MARK, runtime: 'echo' }));
    const create = [
      'agents',
      'create',
      '--tenant',
      slugs.owner,
      '--file',
      file,
      '--slug',
      'private',
      '--json',
    ];
    const agentId = (JSON.parse(await stack.baton(...create)) as { id: string }).id;
    const [installed] = await sql<{ id: string }>(
      stack,
      `SELECT id FROM installed_agents WHERE slug = 'limited'`,
    );
    const [tenant] = await sql<{ id: string }>(stack, `SELECT id FROM tenants WHERE slug = '${slugs.owner}'`);
    const host = 'private-owner.example';
    await stack.baton('hosts', 'bind', host, '--tenant', slugs.owner, '--agent', 'private');
    const contextId = randomUUID();
    const waiting = await this.startTask('echo', { contextId, metadata: { echo: { askInput: true } } });
    const ended = await this.startTask('echo', { contextId });
    const working = await this.startTask('witness', {}, true);
    // The stranger has something as well, so that its lists are not empty.
    for (let i = 0; i < 3; i++) await this.call(tokens.stranger, 'SendMessage', message({ text: 'mine' }));
    const page = await this.call(tokens.owner, 'ListTasks', { pageSize: 1 });
    const schedule = await this.makeSchedule();
    await giveUpPush(stack, ended, MARK);
    this.owned = {
      waitingTask: waiting,
      endedTask: ended,
      workingTask: working,
      contextId,
      host,
      agentSlug: 'private',
      agentId,
      installedSlug: 'limited',
      installedId: installed!.id,
      pageToken: page.nextPageToken as string,
      tenantSlug: slugs.owner,
      tenantId: tenant!.id,
      deadRun: await buryRun(stack, ended, MARK),
      secretName: await this.makeSecret(),
      scheduleId: schedule.id,
      scheduleName: schedule.name,
      tokenId: await this.makeToken(),
      webhookId: await this.makeWebhook(),
      connectionId: await makeConnection(this.stack, slugs.owner, MARK),
      capId: await this.makeCap(),
      bulkId: await this.makeBulkOperation(),
    };
  }

  /** The agents that every tenant may call, and so see. */
  async sharedAgentIds(): Promise<string[]> {
    const everybodys = 'SELECT id FROM installed_agents WHERE every_tenant';
    const rows = await sql<{ id: string }>(this.stack, everybodys);
    return rows.map(({ id }) => id);
  }

  /** A secret of the owner's. @returns its name */
  async makeSecret(): Promise<string> {
    const name = `private-${randomUUID()}`;
    await this.must('PUT', `/v1/secrets/${name}`, { value: MARK });
    return name;
  }

  /** A token of the owner's without a use. @returns its id */
  async makeToken(): Promise<string> {
    return (await this.must('POST', '/v1/tokens', { name: MARK })).id as string;
  }

  /** A webhook of the owner's without events. @returns its id */
  async makeWebhook(): Promise<string> {
    const headers = callHeaders(this.tokens.owner);
    const body = { url: `https://1.1.1.1/${MARK}`, enabled: false };
    const answer = await this.send({ method: 'POST', path: '/v1/webhooks', headers, body });
    if (answer.status !== 201) throw new Error(`POST /v1/webhooks: ${answer.text}`);
    return answer.json.id as string;
  }

  /** A spending cap of the owner's. @returns its id */
  async makeCap(): Promise<string> {
    const headers = callHeaders(this.tokens.owner);
    const body = { of: 'caller', subject: `user:${MARK}`, period: 'day', amount: '1000' };
    const answer = await this.send({ method: 'PUT', path: '/v1/spending-caps', headers, body });
    if (answer.status !== 200) throw new Error(`PUT /v1/spending-caps: ${answer.text}`);
    return answer.json.id as string;
  }

  /** An operation of the owner's on no tasks. @returns its id */
  async makeBulkOperation(): Promise<string> {
    const body = { action: 'cancel', filter: { error: MARK } };
    return (await this.must('POST', '/v1/bulk-operations', body)).id as string;
  }

  /** A schedule of the owner's, which is not due soon. */
  async makeSchedule(): Promise<{ id: string; name: string }> {
    const name = `private-${randomUUID()}`;
    const body = { name, agent: 'private', cron: '@yearly', text: MARK };
    const { id } = await this.must('POST', '/v1/schedules', body);
    return { id: id as string, name };
  }

  /** A request of the owner's, which must succeed. */
  private async must(method: string, path: string, body: object): Promise<Wired> {
    const headers = callHeaders(this.tokens.owner);
    const answer = await this.send({ method, path, headers, body });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`);
    return answer.json;
  }

  private async startTask(agent: string, more: object, returnImmediately = false): Promise<string> {
    const params = { ...message({ text: MARK, ...more }), configuration: { returnImmediately } };
    const { task } = await this.call(this.tokens.owner, 'SendMessage', params, `/agents/${agent}`);
    if (returnImmediately) await this.working(task.id as string, agent);
    return task.id as string;
  }

  /** Waits until the agent is at work: from then on its rows rest. */
  private async working(id: string, agent: string): Promise<void> {
    for (;;) {
      const task = await this.call(this.tokens.owner, 'GetTask', { id }, `/agents/${agent}`);
      if (task.status.state === 'TASK_STATE_WORKING') return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

export const rpc = (method: string, params: object): object => ({ jsonrpc: '2.0', id: 1, method, params });

export const callHeaders = (token: string | undefined, more: Headers = {}): Headers => ({
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  authorization: token && `Bearer ${token}`,
  ...more,
});

/** Params of a send in the 1.0 form. */
export const message = ({ text, ...more }: { text: string; [name: string]: unknown }) => ({
  message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more },
});
