import { randomBytes, randomUUID } from 'node:crypto';
import http from 'node:http';
import { OpenIdProvider } from '../support/open-id-provider.js';
import { GrpcCaller, type GrpcEnd } from '../support/api/grpc-caller.js';
import type { GrpcMethod } from '../../libs/a2a/src/grpc-methods.js';
import { Stack, type TestTenant } from '../support/stack.js';
import {
  type Answer,
  exchange,
  type Headers,
  type Watch,
  type Wired,
  type WireRequest,
} from '../support/wire.js';
import { buryRun, expireToken, giveUpPush, makeConnection, revokeToken } from './operator-hands.js';
import { type Column, SCOPE_COLUMNS } from './rights.js';
import { callHeaders, message, rpc } from './world.js';

export const AGENT = 'echo';
const HOST = 'open.example';
/** An agent that signs in at a server. */
export const SIGNS_IN = 'signs-in';
const AGENT_THAT_SIGNS_IN = {
  name: SIGNS_IN,
  description: SIGNS_IN,
  runtime: 'llm',
  config: {
    model: 'openai/gpt-5',
    tools: { mcp: [{ name: 'desk', url: 'https://desk.example.com/mcp', oauth: {} }] },
  },
};
/** A closed port. */
export const RECEIVER = 'http://127.0.0.1:9/';
const ASKING = { metadata: { echo: { askInput: true } } };

/** Whose task it is that a column asks for. */
const GROUPS = ['own', 'user', 'guest'] as const;
export type Group = (typeof GROUPS)[number];

export const groupOf = (column: Column): Group =>
  GROUPS.find((group) => column === group || column === `${group} 2`) ?? 'own';

/** What is asked for. */
export interface Things {
  task: string;
  deadRun: string;
  agent: string;
  secret: string;
  schedule: string;
  token: string;
  webhook: string;
  /** A sign-in at a server. */
  connection: string;
  cap: string;
  /** An operation on many tasks. */
  bulk: string;
}

/** How one principal calls. A column may have several, which are all alike. */
type Credentials = Readonly<{ token?: string; guest?: string }>;

const HTTP_STATUSES: Readonly<Record<string, number>> = {
  OK: 200,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
};

function grpcAnswer(
  { status, ...error }: Pick<GrpcEnd, 'status' | 'message' | 'details'>,
  result: object,
): Answer {
  const json = status === 'OK' ? result : { error };
  const request = { method: 'POST', path: '', headers: {} };
  return {
    request,
    status: HTTP_STATUSES[status] ?? 400,
    headers: {},
    text: JSON.stringify(json),
    json,
    records: [],
  };
}

/** A tenant with every kind of principal, on one API and one worker, and an OpenID provider. */
export class Principals {
  /** What each group has. Agent, secret, schedule, token, webhook, connection, cap and bulk operation are the tenant's. */
  readonly things = {} as Record<Group, Things>;
  private readonly credentials = new Map<Column, readonly Credentials[]>();
  private made = 0;
  private readonly grpc = new Map<string, GrpcCaller>();
  private readonly connections = new http.Agent({ keepAlive: true });

  private constructor(
    readonly stack: Stack,
    private readonly openId: OpenIdProvider,
  ) {}

  static async start(): Promise<Principals> {
    const openId = await OpenIdProvider.start();
    const env = {
      OUTBOUND_ALLOW: '127.0.0.1,push.example',
      PUSH_NOTIFICATIONS: 'all',
      BATON_MASTER_KEY: randomBytes(32).toString('base64'),
      // So that the management port checks rights, also of guests of this host.
      MANAGEMENT_HOSTS: HOST,
    };
    const stack = await Stack.start({
      driver: 'postgres',
      apis: 1,
      workers: 1,
      env: { ...env, GRPC_PORT: '0', GRPC_PUBLIC_ADDRESS: 'localhost:0' },
    });
    const principals = new Principals(stack, openId);
    try {
      await principals.makeCallers();
      await principals.makeThings();
      return principals;
    } catch (error) {
      await principals.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    for (const caller of this.grpc.values()) caller.close();
    this.connections.destroy();
    await Promise.all([this.stack.stop(), this.openId.stop()]);
  }

  /** The ways in which a column calls: one, but for `bad`. */
  waysOf(column: Column): readonly Credentials[] {
    const ways = this.credentials.get(column);
    if (!ways) throw new Error(`Nobody is "${column}".`);
    return ways;
  }

  /** Sends a request. @param isRoot it is for the root of the public host, where tokens are those of tenants, too */
  async ask(
    { token, guest }: Credentials,
    request: Omit<WireRequest, 'headers'>,
    {
      isRoot = false,
      isManagement = false,
      watch,
    }: { isRoot?: boolean; isManagement?: boolean; watch?: Watch },
  ): Promise<Answer> {
    const isAtHost = guest !== undefined || (isRoot && token !== undefined);
    const headers: Headers = callHeaders(token, { host: isAtHost ? HOST : undefined, 'baton-guest': guest });
    const [api] = this.stack.apis;
    const base = isManagement ? api!.managementUrl : api!.url;
    return exchange(base, { ...request, headers }, watch, this.connections);
  }

  /** Calls by gRPC, at the public host. The answer is as over HTTP+JSON. A stream is cut after its first message. */
  async askGrpc({ token, guest }: Credentials, grpc: GrpcMethod, json: object): Promise<Answer> {
    // A caller with neither is a guest at the host.
    const caller = await this.grpcCaller(token === undefined && guest === undefined ? 'localhost' : HOST);
    const metadata = {
      authorization: token === undefined ? '' : `Bearer ${token}`,
      'baton-agent': AGENT,
      ...(guest !== undefined && { 'baton-guest': guest }),
    };
    const options = { service: grpc.service, metadata };
    if (!grpc.codec.isStreaming(grpc.method)) {
      const { json: result, end } = await caller.ask(grpc.rpc, json, options);
      return grpcAnswer(end, result);
    }
    const { call, end } = caller.stream(grpc.rpc, json, options);
    const first = new Promise<undefined>((resolve) => call.once('data', () => resolve(undefined)));
    const ended = await Promise.race([first, end]);
    call.cancel();
    return grpcAnswer(ended ?? { status: 'OK', message: '', details: [] }, {});
  }

  /** A connection to the address on the card of the agent, for a host name. */
  private async grpcCaller(host: string): Promise<GrpcCaller> {
    const known = this.grpc.get(host);
    if (known) return known;
    const path = `/agents/${AGENT}/.well-known/agent-card.json`;
    const { supportedInterfaces } = await this.must('GET', path);
    const all = supportedInterfaces as { url: string; protocolBinding: string }[];
    const { url } = all.find(({ protocolBinding }) => protocolBinding === 'GRPC')!;
    const caller = this.grpc.get(host) ?? new GrpcCaller(url, { 'grpc.default_authority': host });
    this.grpc.set(host, caller);
    return caller;
  }

  /** A new task of the group, which asks for input, with a push config unless it is a guest's. */
  async makeTask(group: Group): Promise<string> {
    const isGuest = group === 'guest';
    const taskPushNotificationConfig = { id: 'config', url: 'https://push.example' };
    const params = message({ text: 'hi', ...ASKING });
    const body = rpc('SendMessage', {
      ...params,
      ...(!isGuest && { configuration: { taskPushNotificationConfig } }),
    });
    const request = { method: 'POST', path: isGuest ? '/' : `/agents/${AGENT}`, body };
    const answer = await this.ask(this.waysOf(group)[0]!, request, { isRoot: isGuest });
    const { result } = answer.json as { result?: { task: { id: string } } };
    if (!result) throw new Error(answer.text);
    return result.task.id;
  }

  /** Another thing of the tenant of the same kind, which can be changed. */
  async makeThing(kind: Exclude<keyof Things, 'task' | 'deadRun'>): Promise<string> {
    const name = `thing-${(this.made += 1)}`;
    const makers = {
      agent: async () => {
        await this.must('PUT', `/v1/agents/${name}`, { name, description: name, runtime: 'echo' });
        // Only what is no longer in force can be erased.
        await this.must('PATCH', `/v1/agents/${name}`, { description: 'changed' });
        // A version that can be promoted and withdrawn.
        const agent = { name, description: 'next', runtime: 'echo' };
        return this.must('PUT', `/v1/agents/${name}/next`, { share: 1, agent });
      },
      secret: () => this.must('PUT', `/v1/secrets/${name}`, { value: 'value' }),
      schedule: () => this.must('POST', '/v1/schedules', { name, agent: AGENT, cron: '@yearly', text: 'hi' }),
      token: () => this.must('POST', '/v1/tokens', { name }),
      cap: () =>
        this.must('PUT', '/v1/spending-caps', { of: 'caller', subject: name, period: 'day', amount: '1000' }),
      connection: async () => ({
        id: await makeConnection(this.stack, (await this.must('GET', '/v1/whoami')).tenant as string, name),
      }),
      webhook: () => this.must('POST', '/v1/webhooks', { url: RECEIVER, enabled: false }),
      bulk: () => this.must('POST', '/v1/bulk-operations', { action: 'cancel', filter: { error: name } }),
    };
    const { id } = await makers[kind]();
    return kind === 'agent' || kind === 'secret' ? name : id!;
  }

  /** All things as the tenant's administrator sees them. */
  async shown(): Promise<unknown[]> {
    const { agent, schedule, token, webhook, secret } = this.things.own;
    const tasks = GROUPS.map((group) => `/v1/tasks/${this.things[group].task}`);
    const paths = [
      ...tasks,
      `/v1/agents/${agent}`,
      `/v1/schedules/${schedule}`,
      `/v1/tokens/${token}`,
      `/v1/webhooks/${webhook}`,
    ];
    const { secrets } = await this.must('GET', '/v1/secrets?limit=100');
    return [
      ...(await Promise.all(paths.map((path) => this.must('GET', path)))),
      (secrets as { name: string }[]).find(({ name }) => name === secret),
    ];
  }

  /** A request of the tenant's administrator, which must succeed. */
  async must(method: string, path: string, body?: object): Promise<Wired> {
    const request = { method, path, ...(body && { body }) };
    const answer = await this.ask(this.waysOf('admin')[0]!, request, {});
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`);
    return answer.json;
  }

  private async makeCallers(): Promise<void> {
    const { stack, openId } = this;
    const [{ slug, token: admin }, foreign, suspended] = (await Promise.all(
      [0, 1, 2].map(() => stack.createTenant('admin')),
    )) as [TestTenant, TestTenant, TestTenant];
    const set = (column: Column, ...ways: Credentials[]): void => void this.credentials.set(column, ways);
    set('admin', { token: admin });
    for (const [column, scope] of Object.entries(SCOPE_COLUMNS)) {
      if (scope !== 'admin') set(column as Column, { token: await stack.createToken(slug, scope) });
    }
    set('own', { token: await stack.createToken(slug, 'agents:call') });
    set('reader', { token: await stack.createToken(slug, 'tasks:read', 'agents:call') });
    const limited = { name: 'limited', scopes: ['admin'], agents: ['index'] };
    set('limited', { token: (await this.must('POST', '/v1/tokens', limited)).secret! });
    set('guest', { guest: randomUUID() });
    set('guest 2', { guest: randomUUID() });
    set('nobody', {});
    const operator = await stack.baton('operator-tokens', 'create', '--json');
    set('operator', { token: (JSON.parse(operator) as { token: string }).token });
    set('foreign', { token: foreign.token });
    set('suspended', { token: suspended.token });
    const [revoked, expired] = [
      await stack.createToken(slug, 'admin'),
      await stack.createToken(slug, 'admin'),
    ];
    const issuer = ['--tenant', slug, '--audience', 'baton', '--allow-http'];
    await stack.addIssuer(openId.url, ...issuer);
    const users = [await openId.userToken('ada'), await openId.userToken('bob')];
    set('user', { token: users[0]! });
    set('user 2', { token: users[1]! });
    const bad = [revoked, expired, `baton_${'g'.repeat(43)}`, `${users[0]!.slice(0, -6)}AAAAAA`];
    set('bad', ...bad.map((token) => ({ token })));
    await stack.baton('hosts', 'bind', HOST, '--tenant', slug, '--agent', AGENT, '--public');
    const unlimited = ['--guest-requests-per-second', 'none', '--guest-messages-per-day', 'none'];
    await stack.baton('tenants', 'limits', slug, ...unlimited);
    await stack.baton('tenants', 'set', foreign.slug, '--default-agent', AGENT);
    await stack.baton('tenants', 'suspend', suspended.slug, '--reason', 'unpaid bill');
    await revokeToken(stack, slug, revoked);
    await expireToken(stack, expired);
  }

  private async makeThings(): Promise<void> {
    await this.must('PUT', `/v1/agents/${SIGNS_IN}`, AGENT_THAT_SIGNS_IN);
    const shared = {
      agent: await this.makeThing('agent'),
      secret: await this.makeThing('secret'),
      schedule: await this.makeThing('schedule'),
      token: await this.makeThing('token'),
      webhook: await this.makeThing('webhook'),
      connection: await this.makeThing('connection'),
      cap: await this.makeThing('cap'),
      bulk: await this.makeThing('bulk'),
    };
    for (const group of GROUPS) {
      const task = await this.makeTask(group);
      await giveUpPush(this.stack, task, 'test');
      this.things[group] = { ...shared, task, deadRun: await buryRun(this.stack, task, 'test') };
    }
  }
}
