import { randomBytes, randomUUID } from 'node:crypto';
import type { OperationName } from '../../libs/a2a/src/operation.js';
import { rpcPaths } from '../../libs/a2a/src/profiles/index.js';
import { profileFor, type RpcPath } from '../../libs/a2a/src/profiles/profile.js';
import { CARD_PATHS, MCP_PATHS, REST_ROUTES } from '../support/api/routes.js';
import { HTTP_ROUTES, type HttpRoute } from '../../libs/a2a/src/http-routes.js';
import type { Headers, WireRequest } from '../support/wire.js';
import { AGENTS, type Case, type Kind, TASKS, TENANTS } from './case.js';
import { httpRequestOf, METHODS, type Named } from './methods.js';
import { restCases } from './rest-cases.js';
import { callHeaders, message, rpc, type Twins, type World } from './world.js';

const SEND = [...TASKS, 'contextId', 'reference', 'messageId', 'idempotencyKey', 'alias'] as const;

/** What each operation can name besides the agent. A new operation does not compile until it stands here. */
const KINDS: Readonly<Record<OperationName, { scope: Case['scope']; kinds: readonly Kind[] }>> = {
  sendMessage: { scope: 'agents:call', kinds: SEND },
  sendStreamingMessage: { scope: 'agents:call', kinds: SEND },
  cancelTask: { scope: 'agents:call', kinds: [...TASKS, 'alias'] },
  createTaskPushNotificationConfig: { scope: 'agents:call', kinds: TASKS },
  getTaskPushNotificationConfig: { scope: 'agents:call', kinds: TASKS },
  listTaskPushNotificationConfigs: { scope: 'agents:call', kinds: TASKS },
  deleteTaskPushNotificationConfig: { scope: 'agents:call', kinds: TASKS },
  getTask: { scope: 'tasks:read', kinds: [...TASKS, 'alias'] },
  listTasks: { scope: 'tasks:read', kinds: ['contextId', 'pageToken'] },
  subscribeToTask: { scope: 'tasks:read', kinds: [...TASKS, 'alias', 'cursor'] },
  getExtendedAgentCard: { scope: 'tasks:read', kinds: [] },
};

const isOneOf = <K extends Kind>(kinds: readonly K[], kind: Kind): kind is K => kinds.includes(kind as K);

/** Every case of every path there is. Throws for a method or a path without a description. */
export const allCases = (): Case[] => [
  ...rpcPaths().flatMap(rpcCases),
  ...HTTP_ROUTES.flatMap(httpCases),
  ...REST_ROUTES.flatMap(({ path, method }) => restCases(path, method)),
  ...CARD_PATHS.flatMap(cardCases),
  ...MCP_PATHS.flatMap(mcpCases),
];

const isSend = (operation: OperationName): boolean =>
  operation === 'sendMessage' || operation === 'sendStreamingMessage';

function rpcCases(path: RpcPath): Case[] {
  return path.profiles.flatMap((profile) =>
    profile.methods
      .filter((method) => profileFor(path, method) === profile)
      .flatMap((method) => methodCases(path, method)),
  );
}

function methodCases(path: RpcPath, method: string): Case[] {
  const describe = METHODS[method];
  if (!describe) throw new Error(`Describe the method ${method} in methods.ts, and what it can name.`);
  const codec = profileFor(path, method).codecFor(method)!;
  const sample = codec.decode(method, describe({ taskId: randomUUID(), alias: 'a', agent: 'a' }));
  const { operation, clientTaskId } = sample;
  const { scope, kinds } = KINDS[operation];
  const sends = isSend(operation);
  const named = clientTaskId !== undefined;
  const hasAliases = path.profiles.some(({ methods }) => methods.includes('tasks/send'));
  const kindsHere = [
    ...kinds.filter((kind) => kind !== 'alias' || (hasAliases && (named || !sends))),
    ...(path.path.includes(':agent') || path.path === '/a2a' ? AGENTS : []),
    ...(path.path === '/' ? (['host'] as const) : []),
    ...(codec.version === '1.0' ? TENANTS : []),
  ];
  return kindsHere.map((kind) => {
    const request = (id: string) => rpcRequest(path.path, method, kind, id, sends);
    const makesOwn = sends && (named || !isOneOf(TASKS, kind));
    return {
      title: `POST ${path.path} ${method} (${codec.version}) by ${kind}`,
      operation: `${operation} (${codec.version})`,
      kind,
      scope,
      sends,
      open: false,
      request,
      refused: isOneOf(AGENTS, kind) || (isOneOf([...TASKS, 'alias', 'cursor'], kind) && !makesOwn),
      prepare: preparation(path.path, kind, { sends, named, request }),
    };
  });
}

/** What the path of a route names besides a task. A caller of 0.1 chooses ids of tasks; there is no such one here. */
function httpCases(route: HttpRoute): Case[] {
  const { verb, path, method, codec } = route;
  const namesTenant = path.includes('/:tenant/');
  const { operation } = codec.decode(method, METHODS[method]!({ taskId: randomUUID() }));
  const { scope, kinds } = KINDS[operation];
  const sends = isSend(operation);
  // What is not refused makes a task, which is dear: one route shows that the binding passes on what it names.
  const isMain = !sends || path === '/agents/:agent/message::send';
  const kindsHere = namesTenant
    ? TENANTS
    : [
        ...kinds.filter((kind) => kind !== 'alias' && (isMain || isOneOf(TASKS, kind))),
        ...AGENTS,
        ...(isMain && codec.version === '1.0' ? TENANTS : []),
      ];
  return kindsHere.map((kind) => {
    const request = (id: string) => httpRequest(route, kind, id, sends);
    return {
      title: `${verb} ${path} ${method} (${codec.version}) by ${kind}`,
      operation: `${operation} (${codec.version})`,
      // The name of another tenant is refused before the scopes are checked.
      kind,
      scope: namesTenant ? 'tasks:read' : scope,
      sends,
      open: false,
      request,
      refused: namesTenant || isOneOf([...AGENTS, ...TASKS, 'cursor'], kind),
      prepare: sends ? preparation(path, kind, { sends, named: false, request }) : undefined,
    };
  });
}

function httpRequest(route: HttpRoute, kind: Kind, id: string, sends: boolean): WireRequest {
  const named: Named = { taskId: sends ? undefined : randomUUID() };
  if (isOneOf(TASKS, kind) || kind === 'cursor') named.taskId = id;
  nameIn(named, kind, id);
  const agent = isOneOf(AGENTS, kind) ? id : kind === 'workingTask' ? 'witness' : 'echo';
  return { ...httpRequestOf(route, named, { agent }), headers: idHeaders(kind, id) };
}

/** Things that the stranger's own calls would change, if they were named twice, are made for each case. */
function preparation(
  path: string,
  kind: Kind,
  { sends, named, request }: { sends: boolean; named: boolean; request: Case['request'] },
): Case['prepare'] {
  const makeTask = async (world: World): Promise<string> => {
    const { task } = await world.call(world.tokens.owner, 'SendMessage', message({ text: 'again' }));
    return (task as { id: string }).id;
  };
  if (sends && named && isOneOf(TASKS, kind)) return makeTask;
  const rehearsed = isOneOf(['contextId', 'messageId', 'idempotencyKey', 'alias'], kind);
  if (!rehearsed || (!sends && kind !== 'alias')) return undefined;
  return async (world) => {
    const id = randomUUID();
    const first = sends ? request(id) : rpcRequest(path, 'tasks/send', 'alias', id, true);
    const answer = await world.send({
      ...first,
      headers: { ...first.headers, ...callHeaders(world.tokens.owner) },
    });
    if (answer.status !== 200 || /"error"/.test(answer.text))
      throw new Error(`${path} ${kind}: ${answer.text}`);
    return id;
  };
}

function rpcRequest(path: string, method: string, kind: Kind, id: string, sends: boolean): WireRequest {
  const named: Named = { taskId: sends ? undefined : randomUUID(), alias: randomUUID() };
  if (isOneOf(TASKS, kind) || kind === 'cursor') Object.assign(named, { taskId: id, alias: id });
  if (kind === 'alias') Object.assign(named, { taskId: sends ? undefined : id, alias: id });
  nameIn(named, kind, id);
  const ofWitness = kind === 'workingTask' && !method.startsWith('tasks/send');
  const agent = isOneOf(AGENTS, kind) ? id : ofWitness ? 'witness' : 'echo';
  // Where no path names the agent, a task does, if there is one.
  if (path === '/a2a' && (isOneOf(AGENTS, kind) || !isOneOf([...TASKS, 'alias', 'cursor'], kind) || sends)) {
    if (!(sends && isOneOf(TASKS, kind) && !method.startsWith('tasks/send'))) named.agent = agent;
  }
  return {
    method: 'POST',
    path: path.replace(':agent', agent),
    headers: idHeaders(kind, id),
    body: rpc(method, METHODS[method]!(named)),
  };
}

/** Names it where every binding has it in the params. */
function nameIn(named: Named, kind: Kind, id: string): void {
  if (kind === 'contextId' || kind === 'messageId' || kind === 'pageToken') named[kind] = id;
  if (kind === 'reference') named.referenceTaskIds = [id];
  if (isOneOf(TENANTS, kind)) named.tenant = id;
}

const idHeaders = (kind: Kind, id: string): Headers => ({
  host: kind === 'host' ? id : undefined,
  'last-event-id': kind === 'cursor' ? '1' : undefined,
  'idempotency-key': kind === 'idempotencyKey' ? id : undefined,
});

/** The `_meta` of an MCP client with tasks. */
const MCP_META = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
};

/** What each request of MCP can name. The tools of agents send. */
const MCP_CALLS: readonly {
  title: string;
  scope: Case['scope'];
  kinds: readonly Kind[];
  sends?: true;
  request(kind: Kind, id: string): { method: string; params: object };
}[] = [
  {
    title: 'tools/call of an agent',
    scope: 'agents:call',
    kinds: [...TASKS, 'contextId', 'messageId', 'idempotencyKey'],
    sends: true,
    request: (kind, id) => ({
      method: 'tools/call',
      params: {
        name: kind === 'workingTask' ? 'witness' : 'echo',
        arguments: {
          message: 'again',
          taskId: isOneOf(TASKS, kind) ? id : undefined,
          contextId: kind === 'contextId' ? id : undefined,
        },
        _meta: { 'claudecode/toolUseId': kind === 'messageId' ? id : undefined },
      },
    }),
  },
  {
    title: 'tools/call by the name of an agent',
    scope: 'agents:call',
    kinds: AGENTS,
    request: (_kind, id) => ({ method: 'tools/call', params: { name: id, arguments: { message: 'again' } } }),
  },
  ...(['task_status', 'task_cancel'] as const).map((name) => ({
    title: `tools/call of ${name}`,
    scope: name === 'task_status' ? ('tasks:read' as const) : ('agents:call' as const),
    kinds: TASKS,
    request: (_kind: Kind, id: string) => ({
      method: 'tools/call',
      params: { name, arguments: { taskId: id } },
    }),
  })),
  ...(['tasks/get', 'tasks/update', 'tasks/cancel'] as const).map((method) => ({
    title: method,
    scope: method === 'tasks/get' ? ('tasks:read' as const) : ('agents:call' as const),
    kinds: TASKS,
    request: (_kind: Kind, id: string) => ({ method, params: { taskId: id, _meta: MCP_META } }),
  })),
];

function mcpCases(path: string): Case[] {
  const ofAgent = path.includes(':agent');
  const calls = MCP_CALLS.flatMap(({ title, scope, kinds, sends = false, request }) =>
    kinds
      // The path names the only agent.
      .filter((kind) => !ofAgent || !isOneOf(AGENTS, kind))
      .map((kind): Case => {
        const agent = kind === 'workingTask' ? 'witness' : 'echo';
        const wire = (id: string): WireRequest => {
          const { method, params } = request(kind, id);
          const body = rpc(method, params);
          const modern = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method };
          const headers = { ...idHeaders(kind, id), ...(method.startsWith('tasks/') && modern) };
          return { method: 'POST', path: path.replace(':agent', agent), headers, body };
        };
        return {
          title: `POST ${path} ${title} by ${kind}`,
          operation: title,
          kind,
          scope,
          sends,
          open: false,
          refused: isOneOf([...AGENTS, ...TASKS], kind),
          request: wire,
          prepare: sends ? preparation(path, kind, { sends, named: false, request: wire }) : undefined,
        };
      }),
  );
  if (!ofAgent) return calls;
  return [
    ...calls,
    ...AGENTS.map((kind): Case => ({
      title: `POST ${path} tools/list by ${kind}`,
      operation: 'tools/list',
      kind,
      scope: 'tasks:read',
      sends: false,
      open: false,
      refused: true,
      request: (id) => ({
        method: 'POST',
        path: path.replace(':agent', id),
        headers: {},
        body: rpc('tools/list', {}),
      }),
    })),
  ];
}

function cardCases(path: string): Case[] {
  const kinds: readonly Kind[] = path.includes(':agent') ? AGENTS : ['host'];
  return kinds.map((kind) => ({
    title: `GET ${path} by ${kind}`,
    operation: 'card',
    kind,
    scope: 'tasks:read',
    sends: false,
    open: kind === 'host',
    refused: kind !== 'host',
    request: (id) => ({
      method: 'GET',
      path: path.replace(':agent', id),
      headers: { host: kind === 'host' ? id : undefined },
    }),
  }));
}

/**
 * Whatever is refused after a look into the database: of one path whose agent stands in it, of one where the task
 * names it, and of the requests. The operations behind the other paths are the same. Agents are looked up once a
 * second, however often they are asked for: a test of the catalog counts its queries.
 */
export const isLookedUp = ({ refused, kind, title }: Case): boolean =>
  refused &&
  ['waitingTask', 'alias', 'cursor'].includes(kind) &&
  /^POST \/(agents\/:agent|a2a) \w\S* \((0\.1|1\.0)\)|\/v1\/requests/.test(title) &&
  !/PushNotificationConfig/.test(title);

/** An id of the same form of nothing. */
export async function twinsOf({ kind, prepare }: Case, world: World): Promise<Twins> {
  const known: Partial<Record<Kind, string>> = world.owned;
  const owned = prepare ? await prepare(world) : (known[kind] ?? world.owned.endedTask);
  return { owned, unknown: unknownLike(kind, owned) };
}

function unknownLike(kind: Kind, owned: string): string {
  const ending = (text: string): string => text.slice(0, -12) + randomBytes(6).toString('hex');
  if (kind === 'tenantSlug') return owned.replace(/\d$/, '9');
  if (kind === 'host') return owned.replace('owner', 'other');
  if (kind === 'agentSlug' || kind === 'installedSlug') return `${owned.slice(0, -1)}x`;
  if (kind !== 'pageToken') return ending(owned);
  const [at, id] = JSON.parse(Buffer.from(owned, 'base64url').toString()) as [string, string];
  return Buffer.from(JSON.stringify([at, ending(id)])).toString('base64url');
}
