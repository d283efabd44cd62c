import { ERRORS, type ErrorKind, OPERATIONS, type OperationName, PROFILES, ProtocolError } from '@baton/a2a';
import { grpcRequestOf, httpRequestOf, METHODS } from '../../../../test/isolation/methods.js';
import { type RpcMethod, rpcMethods } from '../../../../test/isolation/rights.js';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { McpCaller, textsOf } from '../../../../test/support/mcp-client/mcp-caller.js';
import { GrpcCaller } from '../../../../test/support/api/grpc-caller.js';

type Json = Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- tests look at the wire

/** How an error looks in any binding. What a binding does not say is left out. */
interface SeenError {
  message: string;
  reason: string;
  /** The JSON-RPC code. */
  code?: number;
  /** The HTTP status. */
  http?: number;
  /** The name that google.rpc.Code has for it. */
  status?: string;
}

/** One binding of one protocol version. A new one joins by its row in BINDINGS. */
interface Binding {
  name: string;
  operations: readonly OperationName[];
  /** Calls the operation of the agent `echo`, and returns the error. */
  ask(operation: OperationName): Promise<SeenError>;
  /** What the error must be. */
  expected(kind: ErrorKind): Omit<SeenError, 'message'>;
}

/**
 * Every error that an operation may throw: its JSON-RPC code, its status of HTTP+JSON and the name of that, its reason. By
 * A2A 1.0 §5.4 and §11.6, written by hand; A2A 0.3 has the same codes. JSON-RPC has HTTP 200 where `rpcHttp` is not set. gRPC
 * has `status`, too, unless `grpc` is set.
 */
const TABLE: Readonly<
  Record<
    ErrorKind,
    { code: number; http: number; status: string; reason: string; rpcHttp?: number; grpc?: string }
  >
> = {
  parse: { code: -32700, http: 400, status: 'INVALID_ARGUMENT', reason: 'PARSE_ERROR' },
  'invalid-request': { code: -32600, http: 400, status: 'INVALID_ARGUMENT', reason: 'INVALID_REQUEST' },
  'method-not-found': {
    code: -32601,
    http: 404,
    status: 'NOT_FOUND',
    reason: 'METHOD_NOT_FOUND',
    grpc: 'UNIMPLEMENTED',
  },
  'invalid-params': { code: -32602, http: 400, status: 'INVALID_ARGUMENT', reason: 'INVALID_PARAMS' },
  internal: { code: -32603, http: 500, status: 'INTERNAL', reason: 'INTERNAL_ERROR' },
  unavailable: { code: -32603, http: 503, status: 'UNAVAILABLE', reason: 'UNAVAILABLE' },
  overloaded: { code: -32603, http: 503, status: 'UNAVAILABLE', reason: 'OVERLOADED', rpcHttp: 503 },
  'task-not-found': { code: -32001, http: 404, status: 'NOT_FOUND', reason: 'TASK_NOT_FOUND' },
  'agent-not-found': {
    code: -32001,
    http: 404,
    status: 'NOT_FOUND',
    reason: 'AGENT_NOT_FOUND',
    rpcHttp: 404,
  },
  'task-not-cancelable': {
    code: -32002,
    http: 400,
    status: 'FAILED_PRECONDITION',
    reason: 'TASK_NOT_CANCELABLE',
  },
  'task-canceled': {
    code: -32004,
    http: 400,
    status: 'FAILED_PRECONDITION',
    reason: 'UNSUPPORTED_OPERATION',
  },
  'push-not-supported': {
    code: -32003,
    http: 400,
    status: 'FAILED_PRECONDITION',
    reason: 'PUSH_NOTIFICATION_NOT_SUPPORTED',
  },
  'unsupported-operation': {
    code: -32004,
    http: 400,
    status: 'FAILED_PRECONDITION',
    reason: 'UNSUPPORTED_OPERATION',
  },
  'content-type-not-supported': {
    code: -32005,
    http: 400,
    status: 'INVALID_ARGUMENT',
    reason: 'CONTENT_TYPE_NOT_SUPPORTED',
  },
  'agent-threw': { code: -32006, http: 500, status: 'INTERNAL', reason: 'INVALID_AGENT_RESPONSE' },
  'extended-card-not-configured': {
    code: -32007,
    http: 400,
    status: 'FAILED_PRECONDITION',
    reason: 'EXTENDED_AGENT_CARD_NOT_CONFIGURED',
  },
  'extension-required': {
    code: -32008,
    http: 400,
    status: 'FAILED_PRECONDITION',
    reason: 'EXTENSION_SUPPORT_REQUIRED',
  },
  'version-not-supported': {
    code: -32009,
    http: 400,
    status: 'FAILED_PRECONDITION',
    reason: 'VERSION_NOT_SUPPORTED',
  },
  'agent-disabled': { code: -32004, http: 400, status: 'FAILED_PRECONDITION', reason: 'AGENT_DISABLED' },
  'bad-request': {
    code: -32600,
    http: 400,
    status: 'INVALID_ARGUMENT',
    reason: 'INVALID_REQUEST',
    rpcHttp: 400,
  },
  unauthenticated: {
    code: -32600,
    http: 401,
    status: 'UNAUTHENTICATED',
    reason: 'UNAUTHENTICATED',
    rpcHttp: 401,
  },
  forbidden: {
    code: -32600,
    http: 403,
    status: 'PERMISSION_DENIED',
    reason: 'PERMISSION_DENIED',
    rpcHttp: 403,
  },
  'tenant-suspended': {
    code: -32600,
    http: 403,
    status: 'PERMISSION_DENIED',
    reason: 'TENANT_SUSPENDED',
    rpcHttp: 403,
  },
  'not-found': { code: -32600, http: 404, status: 'NOT_FOUND', reason: 'NOT_FOUND', rpcHttp: 404 },
  conflict: { code: -32600, http: 409, status: 'ABORTED', reason: 'CONFLICT', rpcHttp: 409 },
  'precondition-failed': {
    code: -32600,
    http: 412,
    status: 'FAILED_PRECONDITION',
    reason: 'PRECONDITION_FAILED',
    rpcHttp: 412,
  },
  'secret-refused': {
    code: -32602,
    http: 422,
    status: 'INVALID_ARGUMENT',
    reason: 'SECRET_REFUSED',
    rpcHttp: 422,
  },
  'egress-refused': {
    code: -32602,
    http: 422,
    status: 'INVALID_ARGUMENT',
    reason: 'EGRESS_REFUSED',
    rpcHttp: 422,
  },
  'not-configured': {
    code: -32004,
    http: 501,
    status: 'UNIMPLEMENTED',
    reason: 'NOT_CONFIGURED',
    rpcHttp: 501,
  },
  'request-timeout': {
    code: -32600,
    http: 408,
    status: 'DEADLINE_EXCEEDED',
    reason: 'REQUEST_TIMEOUT',
    rpcHttp: 408,
  },
  'uri-too-long': {
    code: -32600,
    http: 414,
    status: 'INVALID_ARGUMENT',
    reason: 'URI_TOO_LONG',
    rpcHttp: 414,
  },
  'too-large': {
    code: -32600,
    http: 413,
    status: 'INVALID_ARGUMENT',
    reason: 'REQUEST_TOO_LARGE',
    rpcHttp: 413,
    grpc: 'RESOURCE_EXHAUSTED',
  },
  'media-type': {
    code: -32005,
    http: 415,
    status: 'INVALID_ARGUMENT',
    reason: 'UNSUPPORTED_MEDIA_TYPE',
    rpcHttp: 415,
  },
  'limit-exceeded': {
    code: -32029,
    http: 429,
    status: 'RESOURCE_EXHAUSTED',
    reason: 'LIMIT_EXCEEDED',
    rpcHttp: 429,
  },
};

let api: FakeApi;
let grpc: GrpcCaller;
beforeAll(async () => {
  api = await startFakeApi({ GRPC_PORT: '0' });
  grpc = new GrpcCaller(api.grpcAddress);
});
afterAll(async () => {
  grpc.close();
  await api.close();
});

/** The calls of the specification's own paths, one for each operation. */
const callsOf = (version: string, over?: 'route' | 'grpc'): ReadonlyMap<OperationName, RpcMethod> =>
  new Map(
    rpcMethods()
      .filter(({ profile, route }) => profile === PROFILES.spec && !route?.path.includes('/:tenant/'))
      .filter((each) => each.version === version && (each.route ? 'route' : each.grpc && 'grpc') === over)
      .map((each) => [each.operation, each]),
  );

const NAMED = { taskId: 'task-1' };
const AUTHORIZED = { authorization: 'Bearer admin', 'content-type': 'application/json' };

/** The members of an error that all versions have: 0.3 has an object where 1.0 has a list. */
const seenIn = ({ message, code }: Json, details: unknown): Pick<SeenError, 'message' | 'reason'> & Json => {
  const { reason, domain } = [details].flat()[0] as { reason: string; domain: string };
  expect(domain).toBe('a2a-protocol.org');
  return { message: message as string, reason, code: code as number };
};

function overJsonRpc(version: '1.0' | '0.3'): Binding {
  const calls = callsOf(version);
  return {
    name: `JSON-RPC ${version}`,
    operations: [...calls.keys()],
    async ask(operation) {
      const { method } = calls.get(operation)!;
      const response = await fetch(`${api.url}/agents/echo`, {
        method: 'POST',
        headers: { ...AUTHORIZED, 'a2a-version': version },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: METHODS[method]!(NAMED) }),
      });
      const { error } = (await response.json()) as Json;
      const { message, reason, code } = seenIn(error as Json, (error as Json).data);
      return { message, reason, code: code as number, http: response.status };
    },
    expected: (kind) => {
      const { code, reason, rpcHttp = 200 } = TABLE[kind];
      return { code, reason, http: rpcHttp };
    },
  };
}

function overHttpJson(version: '1.0' | '0.3'): Binding {
  const calls = callsOf(version, 'route');
  return {
    name: `HTTP+JSON ${version}`,
    operations: [...calls.keys()],
    async ask(operation) {
      const { route } = calls.get(operation)!;
      const { method, path, body } = httpRequestOf(route!, NAMED, { agent: 'echo' });
      const response = await fetch(`${api.url}${path}`, {
        method,
        headers: AUTHORIZED,
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const json = (await response.json()) as Json;
      const { message, reason } = seenIn(json.error as Json, (json.error as Json).details);
      // Clients of 0.3 look for the JSON-RPC error at the top of the body.
      const code = version === '0.3' && { code: json.code as number };
      expect((json.error as Json).code).toBe(response.status);
      return {
        message,
        reason,
        http: response.status,
        status: (json.error as Json).status as string,
        ...code,
      };
    },
    expected: (kind) => {
      const { code, http, status, reason } = TABLE[kind];
      return { http, status, reason, ...(version === '0.3' && { code }) };
    },
  };
}

function overGrpc(version: '1.0' | '0.3'): Binding {
  const calls = callsOf(version, 'grpc');
  return {
    name: `gRPC ${version}`,
    operations: [...calls.keys()],
    async ask(operation) {
      const method = calls.get(operation)!.grpc!;
      const { service, rpc } = method;
      const options = { service, metadata: { authorization: 'Bearer admin', 'baton-agent': 'echo' } };
      const json = grpcRequestOf(method, NAMED);
      const { end } = OPERATIONS[operation].streaming
        ? grpc.stream(rpc, json, options)
        : await grpc.ask(rpc, json, options);
      const { status, message, details } = await end;
      return { message, reason: seenIn({}, details).reason, status };
    },
    expected: (kind) => {
      const { status, reason, grpc: own = status } = TABLE[kind];
      return { status: own, reason };
    },
  };
}

/**
 * Every error that an MCP tool answers as a protocol error: the code and the HTTP status. Others are results, because a model can
 * do something about them. MCP reserves the codes of servers, so errors that JSON-RPC does not have are in the status.
 */
const MCP: Partial<Record<ErrorKind, { code: number; http: number }>> = {
  parse: { code: -32700, http: 400 },
  'invalid-request': { code: -32600, http: 400 },
  'bad-request': { code: -32600, http: 400 },
  'method-not-found': { code: -32601, http: 200 },
  'agent-not-found': { code: -32602, http: 200 },
  internal: { code: -32603, http: 500 },
  unavailable: { code: 503, http: 503 },
  overloaded: { code: 503, http: 503 },
  'push-not-supported': { code: 400, http: 200 },
  'extended-card-not-configured': { code: 400, http: 200 },
  'version-not-supported': { code: 400, http: 200 },
  unauthenticated: { code: 401, http: 401 },
  forbidden: { code: 403, http: 403 },
  'tenant-suspended': { code: 403, http: 403 },
  'not-found': { code: 404, http: 404 },
  conflict: { code: 409, http: 409 },
  'precondition-failed': { code: 412, http: 412 },
  'secret-refused': { code: 422, http: 422 },
  'egress-refused': { code: 422, http: 422 },
  'not-configured': { code: 501, http: 501 },
  'request-timeout': { code: 408, http: 408 },
  'uri-too-long': { code: 414, http: 414 },
  'too-large': { code: 413, http: 413 },
  'media-type': { code: 415, http: 415 },
  'limit-exceeded': { code: 429, http: 429 },
};

/** MCP has a tool for each of these. */
const TOOLS: Partial<Record<OperationName, string>> = {
  sendMessage: 'echo',
  sendStreamingMessage: 'echo',
  getTask: 'task_status',
  cancelTask: 'task_cancel',
};

function overMcp(): Binding {
  return {
    name: 'MCP',
    operations: Object.keys(TOOLS) as OperationName[],
    async ask(operation) {
      const name = TOOLS[operation]!;
      const args = name === 'echo' ? { message: 'x' } : { taskId: 'task-1' };
      api.agentOfTask['task-1'] = 'echo';
      const accept = operation === 'sendMessage' ? { accept: 'application/json' } : {};
      const caller = new McpCaller(`${api.url}/mcp`, 'admin');
      const { status: http, result, error } = await caller.tool(name, args, accept);
      if (result)
        return { message: textsOf({ result }).join(), reason: `isError: ${String(result.isError)}`, http };
      const { message, code, data } = error!;
      // Its message is about the tool.
      if (/^params.name: Unknown tool: echo:/.test(message as string))
        return {
          message: 'what agent-not-found says',
          reason: 'AGENT_NOT_FOUND',
          http,
          code: code as number,
        };
      return { message, reason: (data?.reason ?? 'AGENT_NOT_FOUND') as string, code: code as number, http };
    },
    expected: (kind) => {
      const expected = MCP[kind];
      return expected ? { ...expected, reason: TABLE[kind].reason } : { reason: 'isError: true', http: 200 };
    },
  };
}

/** Every binding and version. */
const BINDINGS: readonly Binding[] = [
  overJsonRpc('1.0'),
  overJsonRpc('0.3'),
  overHttpJson('1.0'),
  overHttpJson('0.3'),
  overGrpc('1.0'),
  overGrpc('0.3'),
  overMcp(),
];
const KINDS = Object.keys(ERRORS) as ErrorKind[];

it('the table has every error, and every binding of 1.0 has every operation', () => {
  expect(Object.keys(TABLE).sort()).toEqual([...KINDS].sort());
  for (const { name, operations } of BINDINGS.filter((each) => each.name !== 'MCP')) {
    const all = Object.keys(OPERATIONS).filter((each) => name.endsWith('1.0') || each !== 'listTasks');
    expect([name, [...operations].sort()]).toEqual([name, all.sort()]);
  }
});

describe.each(BINDINGS)('over $name', ({ operations, ask, expected }) => {
  it.each(operations)('%s answers every error as in the table', async (operation) => {
    for (const kind of KINDS) {
      const message = `what ${kind} says`;
      const fail = (): never => {
        throw new ProtocolError(kind, message);
      };
      const { streaming } = OPERATIONS[operation];
      // oxlint-disable-next-line require-yield -- it fails before its first event
      const act = streaming
        ? async function* () {
            fail();
          }
        : async () => fail();
      Object.assign(api.operations, { [operation]: act });
      expect([kind, await ask(operation)]).toEqual([kind, { message, ...expected(kind) }]);
    }
  });
});
