import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Scope } from '../../libs/a2a/src/rights.js';
import { METHODS } from './methods.js';
import { GRPC_METHODS, type GrpcMethod } from '../../libs/a2a/src/grpc-methods.js';
import { HTTP_ROUTES, type HttpRoute } from '../../libs/a2a/src/http-routes.js';
import type { Codec } from '../../libs/a2a/src/codecs/codec.js';
import { isPush, OPERATIONS, type OperationName } from '../../libs/a2a/src/operation.js';
import { PROFILES, rpcPaths } from '../../libs/a2a/src/profiles/index.js';
import { type Profile, profileFor } from '../../libs/a2a/src/profiles/profile.js';

/** The columns of a token that has one scope and nothing else. */
export const SCOPE_COLUMNS = {
  call: 'agents:call',
  read: 'tasks:read',
  write: 'tasks:write',
  approve: 'tasks:approve',
  'agents:read': 'agents:read',
  'agents:write': 'agents:write',
  secrets: 'secrets:write',
  schedules: 'schedules:write',
  records: 'records:read',
  audit: 'audit:read',
  admin: 'admin',
} as const satisfies Record<string, Scope>;

export const COLUMNS = [
  'own',
  ...(Object.keys(SCOPE_COLUMNS) as (keyof typeof SCOPE_COLUMNS)[]),
  ...(['reader', 'limited', 'user', 'user 2', 'guest', 'guest 2'] as const),
  ...(['foreign', 'suspended', 'bad', 'nobody', 'operator'] as const),
] as const;
export type Column = (typeof COLUMNS)[number];

const CELLS = [
  ...(['yes', 'all', 'own', 'none'] as const),
  ...([
    '401',
    '-',
    'tasks:write',
    'agents:call',
    'agents:write',
    'records:read',
    'agents',
    '404',
    '400',
    'off',
    'in',
  ] as const),
] as const;
/** What must happen; rights.md explains the words. */
export type Cell = (typeof CELLS)[number];
export type Rights = Readonly<Record<Column, Cell>>;

/** The tables of rights.md by their titles. In each, the rights by operation or route. */
export type RightsTables = ReadonlyMap<string, ReadonlyMap<string, Rights>>;

/** Reads rights.md. Throws for a column or a cell that it does not explain, and for a row that is there twice. */
export function readRights(): RightsTables {
  const [, ...sections] = readFileSync(join(__dirname, 'rights.md'), 'utf8').split('\n## ');
  return new Map(
    sections.map((section) => {
      const [title = '', ...lines] = section.split('\n');
      const [header, , ...rows] = lines.filter((line) => line.startsWith('|')).map(cellsOf);
      if (String(header?.slice(1)) !== String(COLUMNS)) throw new Error(`${title}: ${String(header)}`);
      const table = new Map(rows.map(([name = '', ...cells]) => [name, rightsOf(name, cells)]));
      if (table.size !== rows.length) throw new Error(`${title}: a row is there twice`);
      return [title, table];
    }),
  );
}

const cellsOf = (line: string): string[] =>
  line
    .split('|')
    .slice(1, -1)
    .map((cell) => cell.trim().replaceAll('`', ''));

function rightsOf(name: string, cells: readonly string[]): Rights {
  return Object.fromEntries(
    COLUMNS.map((column, i) => {
      const cell = CELLS.find((each) => each === cells[i]);
      if (cell === undefined) throw new Error(`${name}, ${column}: ${cells[i] ?? 'nothing'} is no cell`);
      return [column, cell];
    }),
  ) as Record<Column, Cell>;
}

/** An operation at a path, and its row: a method of JSON-RPC, a route of HTTP+JSON, or an RPC of gRPC. */
export interface RpcMethod {
  path: string;
  /** The JSON-RPC method, or the one that does the same. */
  method: string;
  profile: Profile;
  version: string;
  operation: OperationName;
  row: string;
  /** The task is in the params. */
  namesTask: boolean;
  /** Set if it is one of HTTP+JSON. */
  route?: HttpRoute;
  /** Set if it is one of gRPC. Its path is the service. */
  grpc?: GrpcMethod;
}

/** Every operation at every path of every binding. One that sends is there twice if it can name a task. */
export function rpcMethods(): RpcMethod[] {
  const overRpc = rpcPaths().flatMap((path) =>
    path.profiles.flatMap((profile) =>
      profile.methods
        .filter((method) => profileFor(path, method) === profile)
        .flatMap((method) => formsOf({ path: path.path, method, profile }, profile.codecFor(method)!)),
    ),
  );
  const overHttp = HTTP_ROUTES.flatMap((route) => {
    const { path, method, codec } = route;
    return formsOf({ path, method, profile: PROFILES.spec, route }, codec);
  });
  const overGrpc = GRPC_METHODS.flatMap((grpc) => {
    const { service, method, codec } = grpc;
    return formsOf({ path: service, method, profile: PROFILES.spec, grpc }, codec);
  });
  return [...overRpc, ...overHttp, ...overGrpc];
}

/** Whether a route of a controller is one of these. */
export const isOfA2a = ({ path }: { path: string }): boolean =>
  [...rpcPaths(), ...HTTP_ROUTES].some((each) => each.path === path);

function formsOf(
  at: Pick<RpcMethod, 'path' | 'method' | 'profile' | 'route' | 'grpc'>,
  codec: Codec,
): RpcMethod[] {
  const describe = METHODS[at.method];
  if (!describe) throw new Error(`Describe the method ${at.method} in methods.ts, and what it can name.`);
  const params = describe({ taskId: 't', alias: 'a', agent: 'a' });
  const { operation, clientTaskId } = codec.decode(at.method, params);
  const form = { ...at, version: codec.version, operation };
  // There it is refused whatever it names.
  if (isPush(operation) && at.profile.rules.push === 'refused')
    return [{ ...form, row: 'push where it is refused', namesTask: true }];
  const { access, needsLiveAgent } = OPERATIONS[operation];
  const isSend = access === 'write' && needsLiveAgent;
  if (!isSend) return [{ ...form, row: operation, namesTask: true }];
  const first = { ...form, row: operation, namesTask: false };
  // Where callers choose the ids of their tasks, they can name none of others.
  return clientTaskId === undefined
    ? [first, { ...form, row: `${operation} to a task`, namesTask: true }]
    : [first];
}
