import pLimit from 'p-limit';
import { randomUUID } from 'node:crypto';
import { MANAGEMENT_ROUTES, type Route, ROUTES } from '../support/api/routes.js';
import { errorWire } from '../../libs/a2a/src/json-rpc.js';
import { OPERATIONS } from '../../libs/a2a/src/operation.js';
import { NIGHTLY } from '../support/nightly.js';
import type { Answer, WireRequest } from '../support/wire.js';
import { grpcRequestOf, httpRequestOf, METHODS, type Named } from './methods.js';
import { AGENT, type Group, groupOf, Principals, RECEIVER, SIGNS_IN, type Things } from './principals.js';
import {
  type Cell,
  type Column,
  COLUMNS,
  isOfA2a,
  readRights,
  type Rights,
  type RpcMethod,
  rpcMethods,
} from './rights.js';
import { rpc } from './world.js';

/** Calls that are on their way at the same time. */
const limit = pLimit(4);
const tables = readRights();
const nameOf = ({ method, path }: Route): string => `${method} ${path}`;
/** By the row: of which scopes a route asks for one beside those of `scopes`. */
const MORE_SCOPES = new Map(ROUTES.map((route) => [nameOf(route), route.moreScopes]));

/** The path of a route with what is asked for in place of its names. */
function pathOf({ path }: Route, things: Things): string {
  const { task, schedule, token, webhook, connection, cap, bulk, agent, secret, deadRun } = things;
  const ids: Record<string, string> = {
    requests: task,
    tasks: task,
    'dead-pushes': task,
    schedules: schedule,
    tokens: token,
    webhooks: webhook,
    connections: connection,
    'spending-caps': cap,
    'bulk-operations': bulk,
  };
  const names: Record<string, string> = {
    agent,
    name: secret,
    runId: deadRun,
    version: '1',
    entry: '1',
    card: 'any',
    file: 'any',
  };
  return path.replaceAll(/:(\w+)/g, (_, name: string) => {
    const value = name === 'id' ? ids[path.split('/')[2]!] : names[name];
    if (value === undefined) throw new Error(`${path}: say what ":${name}" stands for`);
    return value;
  });
}

const agentOf = (name: string) => ({ name, description: name, runtime: 'echo' });
/** What a route needs besides its path. */
const BODIES: Readonly<Record<string, (things: Things) => object>> = {
  'POST /mcp': () => rpc('tools/list', {}),
  'POST /agents/:agent/mcp': () => rpc('tools/list', {}),
  'POST /v1/agents': () => ({ ...agentOf('new'), slug: `new-${randomUUID().slice(0, 8)}` }),
  'PUT /v1/agents/:agent': () => agentOf('put'),
  'PUT /v1/agents/:agent/next': () => ({ share: 1, agent: agentOf('next') }),
  'PATCH /v1/agents/:agent': () => ({ description: 'patched' }),
  'PUT /v1/secrets/:name': () => ({ value: 'value' }),
  'PATCH /v1/secrets/:name': () => ({ origins: [] }),
  'POST /v1/schedules': () => ({ name: `new-${randomUUID()}`, agent: AGENT, cron: '@yearly', text: 'hi' }),
  'PATCH /v1/schedules/:id': () => ({ paused: true }),
  'POST /v1/tokens': () => ({ name: 'new', scopes: ['agents:call'] }),
  'PATCH /v1/tokens/:id': () => ({ name: 'patched' }),
  'POST /v1/tokens/:id/rotate': () => ({}),
  'PUT /v1/spending-caps': () => ({ of: 'agent', subject: 'index', period: 'month', amount: '1000' }),
  'POST /v1/bulk-operations': () => ({ action: 'cancel', filter: { agent: AGENT }, dry_run: true }),
  'POST /v1/connections': () => ({ agent: SIGNS_IN }),
  'POST /v1/webhooks': () => ({ url: RECEIVER, enabled: false }),
  'PATCH /v1/webhooks/:id': () => ({ states: null }),
  'POST /v1/webhooks/:id/rotate': () => ({}),
  'POST /v1/tasks/:id/fork': () => ({ dry_run: true }),
  'POST /v1/requests/:id/fork': () => ({ dry_run: true }),
};
const QUERIES: Readonly<Record<string, string>> = {
  'GET /v1/audit': '?action=secret',
  'POST /v1/dead-letters/:runId/redeliver': '?again=true',
  // The one that was given up stays so: the lists show it.
  'POST /v1/dead-pushes/:id/redeliver': '?config=none',
};

/** What a list shows of the things of each group, by its row. */
const LISTED: Readonly<Record<string, (things: Things) => string>> = {
  listTasks: ({ task }) => task,
  'GET /v1/tasks': ({ task }) => task,
  'GET /v1/requests': ({ task }) => task,
  'GET /v1/dead-letters': ({ deadRun }) => deadRun,
  'GET /v1/dead-pushes': ({ task }) => task,
  'GET /v1/agents': ({ agent }) => agent,
  'GET /v1/secrets': ({ secret }) => secret,
  'GET /v1/schedules': ({ schedule }) => schedule,
  'GET /v1/tokens': ({ token }) => token,
  'GET /v1/bulk-operations': ({ bulk }) => bulk,
  'GET /v1/connections': ({ connection }) => connection,
  'GET /v1/webhooks': ({ webhook }) => webhook,
  // It has a record of each that was made.
  'GET /v1/audit': ({ secret }) => `"${secret}"`,
};
const isList = (row: string): boolean => row in LISTED;

let principals: Principals;
let before: unknown[];
let walked = 0;
let rows = 0;
/** As many calls as there have been at the least. */
const FLOOR = NIGHTLY ? 8_000 : 5_500;
beforeAll(async () => {
  principals = await Principals.start();
  before = await principals.shown();
});
afterAll(() => principals.stop());

type Way = ReturnType<Principals['waysOf']>[number];
type RpcError = { code: number; message: string };
type HttpError = { message: string; details: [{ reason: string }] };

/** What came of a call, in the words of the table, or the answer where it has none. */
function cellOf(answer: Answer, row: string, column: Column, method?: RpcMethod): string {
  const { status, text } = answer;
  if (status === 401) return '401';
  if (status === 403) return secondScopeOf(row, text) ?? refusalOf(text, method);
  if (method?.route ?? method?.grpc) return httpCellOf(answer, row, column);
  const isStream = answer.headers['content-type']?.startsWith('text/event-stream') === true;
  const error = method && !isStream ? (answer.json as { error?: RpcError }).error : undefined;
  if (method && error) return errorOf(method, error) ?? text;
  // No task has failed: a caller with this error was let in.
  if (status === 400 && text.includes('only a failed task can be continued')) return 'yes';
  if (status === 404 || status === 400) return String(status);
  // No task is parked: a caller with this error was let in.
  if (status === 409 && text.includes('The task is not parked')) return 'yes';
  // A worker was faster.
  if (status === 409 && text.includes('The operation has ended')) return 'yes';
  if (status >= 300) return `${status} ${text}`;
  return isList(row) ? listedIn(text, row, groupOf(column)) : 'yes';
}

/** The same of an answer over HTTP+JSON. */
function httpCellOf(answer: Answer, row: string, column: Column): string {
  const { status, text } = answer;
  if (status < 300) return isList(row) ? listedIn(text, row, groupOf(column)) : 'yes';
  const { message, details } = (answer.json as { error: HttpError }).error;
  const { reason } = details[0];
  // No agent has either: a caller with this error was let in.
  if (reason === 'PUSH_NOTIFICATION_NOT_SUPPORTED') return 'yes';
  if (row === 'getExtendedAgentCard' && status === 400) return 'yes';
  const isUnknown = status === 404 && /^(TASK|AGENT)_NOT_FOUND$/.test(reason);
  return isUnknown ? '404' : `${status} ${reason} ${message}`;
}

/** The scope that the route asks for after the first one, if that is what is missing. */
const secondScopeOf = (row: string, text: string): string | undefined =>
  MORE_SCOPES.get(row)?.find((scope) => text.includes(`the token lacks the scope ${scope}`));

function refusalOf(text: string, method: RpcMethod | undefined): string {
  if (text.includes('the tenant is suspended: unpaid bill')) return 'off';
  if (text.includes('the token lacks the scope tasks:write: without it')) return 'tasks:write';
  if (text.includes('the token may write only the agents index')) return 'agents';
  if (text.includes('the token has a list of agents, and the audit log is')) return 'agents';
  const scopes = method ? OPERATIONS[method.operation].scopes.join(' or ') : '';
  return text.includes(`the token lacks the scope ${scopes}`) ? '-' : text;
}

function errorOf({ profile, operation }: RpcMethod, { code, message }: RpcError): Cell | undefined {
  const isOf = (kind: Parameters<typeof errorWire>[0]): boolean =>
    errorWire(kind, profile.errors).code === code;
  const isAgent = isOf('agent-not-found') && /agent not found/i.test(message);
  // No agent has either: a caller with this error was let in.
  const withoutCard = operation === 'getExtendedAgentCard' && isOf('unsupported-operation');
  const isMissing = isOf('push-not-supported') || isOf('extended-card-not-configured') || withoutCard;
  if (isMissing && !isAgent) return 'yes';
  return isAgent || isOf('task-not-found') ? '404' : undefined;
}

function listedIn(text: string, row: string, own: Group): string {
  const groups = Object.entries(principals.things) as [Group, Things][];
  const shown = groups.filter(([, things]) => text.includes(LISTED[row]!(things))).map(([group]) => group);
  if (shown.length === groups.length) return 'all';
  if (shown.length === 0) return 'none';
  return String(shown) === own ? 'own' : `those of ${String(shown)}`;
}

/** What the request names: it is a thing of its own where the caller may change it. */
async function thingsFor(request: string, isRead: boolean, column: Column, cell: Cell): Promise<Things> {
  const group = groupOf(column);
  const things = { ...principals.things[group] };
  if (isRead || cell !== 'yes') return things;
  if (/(?:tasks|requests)\/:id| to a task|^cancelTask/.test(request))
    things.task = await principals.makeTask(group);
  const [, kind] =
    /\/v1\/(?:spending-)?(agent|secret|schedule|token|webhook|connection|cap)s\/:/.exec(request) ?? [];
  if (kind) things[kind as 'agent'] = await principals.makeThing(kind as 'agent');
  if (request.includes('/v1/bulk-operations/:')) things.bulk = await principals.makeThing('bulk');
  return things;
}

/** Asks as every principal. @returns the differences from the table */
async function compare(
  row: string,
  rights: Rights,
  columns: readonly Column[],
  ask: (column: Column, way: Way) => Promise<string>,
): Promise<string[]> {
  const ways = columns.flatMap((column) => waysOf(column).map((way) => ({ column, way })));
  const differences = await Promise.all(
    ways.map(async ({ column, way }) => {
      const cell = await limit(() => ask(column, way));
      return cell === rights[column] ? [] : [`${row} by "${column}": ${cell} instead of ${rights[column]}`];
    }),
  );
  walked += ways.length;
  rows += 1;
  return differences.flat();
}

/** Who asks at each path, by day too. */
const EVERYWHERE: readonly Column[] = ['own', 'foreign', 'bad', 'nobody'];

/** By day a third of the others asks at the n-th of the paths that do the same as another one. */
const isTurnOf = (column: Column, n: number): boolean =>
  NIGHTLY || EVERYWHERE.includes(column) || (COLUMNS.indexOf(column) + n) % 3 === 0;

/** A bad token of each kind; by day one of them, in turns. */
function waysOf(column: Column): readonly Way[] {
  const ways = principals.waysOf(column);
  return NIGHTLY ? ways : [ways[rows % ways.length]!];
}

const cut = async (): Promise<boolean> => false;

/** Operators are over all tenants, so what they ask for here belongs to no tenant. */
async function operatorCell({ method, path }: Route, way: Way): Promise<string> {
  const request = { method, path: path.replaceAll(/:\w+/g, randomUUID()) };
  const { status, text } = await principals.ask(way, request, { isManagement: true });
  if (status === 401) return '401';
  return status === 403 || status >= 500 ? text : 'in';
}

async function walkRoute(route: Route): Promise<string[]> {
  const { method, path, isManagement } = route;
  const row = nameOf(route);
  const rights = tables.get(isManagement ? 'Routes of the management port' : 'Routes')!.get(row)!;
  // Arbiter's clients call the paths of tasks by another name.
  const isAlias = path.startsWith('/v1/requests');
  const columns = COLUMNS.filter((column) => !isAlias || isTurnOf(column, ALL_ROUTES.indexOf(route)));
  return compare(row, rights, columns, async (column, way) => {
    if (route.access === 'operator') return operatorCell(route, way);
    const things = await thingsFor(row, method === 'GET', column, rights[column]);
    const body = BODIES[row]?.(things);
    const request = { method, path: pathOf(route, things) + (QUERIES[row] ?? ''), ...(body && { body }) };
    const isRoot = path.startsWith('/.well-known/');
    const watch = path.endsWith('/events') ? { watch: cut } : {};
    return cellOf(await principals.ask(way, request, { isManagement, isRoot, ...watch }), row, column);
  });
}

async function walkMethod(rpcMethod: RpcMethod): Promise<string[]> {
  const { path, row, method, version, operation, route, grpc } = rpcMethod;
  const { access, streaming } = OPERATIONS[operation];
  const rights = tables.get('Operations')!.get(row)!;
  // The gRPC port of a host is as its root.
  const isRoot = path === '/' || grpc !== undefined;
  // Guests may call only the root of a host.
  const expected = isRoot ? rights : { ...rights, guest: '401' as const, 'guest 2': '401' as const };
  // A send costs a run: at other paths one token shows that they lead to the operation.
  const isMain = path === '/' || path === '/agents/:agent';
  const columns = COLUMNS.filter(
    (column) =>
      isMain ||
      (isTurnOf(column, METHODS_OF_ROWS.indexOf(rpcMethod)) &&
        (access === 'read' || column === 'own' || expected[column] !== 'yes')),
  );
  return compare(
    `${route?.verb ?? 'POST'} ${path} ${method} (${version}): ${row}`,
    expected,
    columns,
    async (column, way) => {
      const { task } = await thingsFor(row, access === 'read', column, expected[column]);
      if (grpc) {
        const json = grpcRequestOf(grpc, rpcMethod.namesTask ? { taskId: task } : {});
        return cellOf(await principals.askGrpc(way, grpc, json), row, column, rpcMethod);
      }
      const request = requestOf(rpcMethod, task);
      const watch = streaming ? { watch: cut } : {};
      return cellOf(await principals.ask(way, request, { isRoot, ...watch }), row, column, rpcMethod);
    },
  );
}

function requestOf(
  { path, method, operation, namesTask, route }: RpcMethod,
  task: string,
): Omit<WireRequest, 'headers'> {
  if (route) return httpRequestOf(route, namesTask ? { taskId: task } : {}, { agent: AGENT });
  const named: Named = namesTask ? { taskId: task, alias: task } : { alias: randomUUID() };
  // Where no path names the agent, a task does, if there is one.
  const isByTask = namesTask && !/listTasks|push|Card/.test(operation);
  if (path === '/a2a' && !isByTask) named.agent = AGENT;
  return { method: 'POST', path: path.replace(':agent', AGENT), body: rpc(method, METHODS[method]!(named)) };
}

const ALL_ROUTES = [...ROUTES.filter((route) => !isOfA2a(route)), ...MANAGEMENT_ROUTES];

/** One method for each operation of a path. In 0.1 callers choose the ids of their tasks, so it has one of its own. */
const METHODS_OF_ROWS = [
  ...new Map(
    rpcMethods()
      // Another tenant's name is refused before all else: http-json.spec.ts.
      .filter(({ route }) => !route?.path.includes('/:tenant/'))
      .map((each) => [`${each.path} ${each.row} ${each.version === '0.1' ? '0.1' : ''}`, each]),
  ).values(),
];

/** What each of them finds, one after the other. */
async function all<T>(walks: readonly T[], walk: (each: T) => Promise<string[]>): Promise<string[]> {
  const found: string[] = [];
  for (const each of walks) found.push(...(await walk(each)));
  return found;
}

describe('every kind of principal has the rights of the table', () => {
  const listRoutes = ALL_ROUTES.filter((route) => isList(nameOf(route)));
  const listMethods = METHODS_OF_ROWS.filter(({ row }) => isList(row));

  it('from lists, before there is more than a page', async () => {
    expect(await all(listRoutes, walkRoute)).toEqual([]);
    expect(await all(listMethods, walkMethod)).toEqual([]);
  });

  it('from every other route', async () => {
    const routes = ALL_ROUTES.filter((route) => !listRoutes.includes(route));
    expect(await all(routes, walkRoute)).toEqual([]);
  });

  it('from every operation, at every path', async () => {
    const methods = METHODS_OF_ROWS.filter((method) => !listMethods.includes(method));
    expect(await all(methods, walkMethod)).toEqual([]);
    expect(walked).toBeGreaterThanOrEqual(FLOOR);
  });

  it('and what no call was to change is as it was', async () => {
    expect(await principals.shown()).toEqual(before);
  });
});
