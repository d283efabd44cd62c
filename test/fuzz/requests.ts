/** What a valid request may name, made before the run. */
export interface Known {
  taskIds: readonly string[];
  contextId: string;
}

/** A JSON-RPC request as a well-behaved client sends it. */
export interface RpcTemplate {
  path: string;
  method: string;
  params: object;
  headers?: Record<string, string>;
}

const PATHS = {
  spec: '/agents/echo',
  arbiter: '/v1/a2a/agents/echo',
  langsmith: '/a2a/echo',
  orloj: ['/a2a', '/v1/agent-systems/echo/a2a', '/v1/agents/echo/a2a'],
  root: '/',
};
const EVERYWHERE = [PATHS.spec, PATHS.arbiter, PATHS.langsmith, ...PATHS.orloj, PATHS.root];

const parts = [
  { text: 'hello' },
  { data: { a: [1, 'two'] } },
  { raw: 'AAEC', filename: 'f', mediaType: 'a/b' },
];
const oldParts = [
  { kind: 'text', text: 'hello' },
  { kind: 'data', data: { a: 1 } },
  { kind: 'file', file: { bytes: 'AAEC', name: 'f', mimeType: 'a/b' } },
];
const echo = { echo: { chunks: 3, chunkBytes: 20 } };
const push = {
  url: 'https://example.com/hook',
  token: 't',
  authentication: { schemes: ['Bearer'], credentials: 'c' },
};

function newest({ contextId, taskIds }: Known, taskId = taskIds[0]): [method: string, params: object][] {
  const message = {
    messageId: 'm',
    role: 'ROLE_USER',
    parts,
    contextId,
    metadata: echo,
    extensions: [],
    referenceTaskIds: [],
  };
  const configuration = { acceptedOutputModes: ['text/plain'], historyLength: 2, returnImmediately: true };
  return [
    ['SendMessage', { message, configuration, metadata: { a: 1 } }],
    ['SendMessage', { message: { ...message, taskId: taskIds[1] } }],
    [
      'SendStreamingMessage',
      { message, configuration: { ...configuration, taskPushNotificationConfig: push } },
    ],
    ['GetTask', { id: taskId, historyLength: 1 }],
    [
      'ListTasks',
      {
        contextId,
        status: 'TASK_STATE_COMPLETED',
        pageSize: 10,
        pageToken: '',
        historyLength: 1,
        includeArtifacts: true,
        statusTimestampAfter: '2026-01-31T12:00:00.000Z',
      },
    ],
    ['CancelTask', { id: taskId, metadata: { why: 'x' } }],
    ['SubscribeToTask', { id: taskIds[2] }],
    ['CreateTaskPushNotificationConfig', { taskId, config: push }],
    ['GetTaskPushNotificationConfig', { taskId, id: 'c' }],
    ['GetExtendedAgentCard', {}],
  ];
}

function older({ contextId, taskIds }: Known): [method: string, params: object][] {
  const message = {
    kind: 'message',
    messageId: 'm',
    role: 'user',
    parts: oldParts,
    contextId,
    metadata: echo,
  };
  const configuration = { acceptedOutputModes: ['text/plain'], historyLength: 2, blocking: true };
  return [
    ['message/send', { message, configuration, metadata: { agent: 'echo' } }],
    ['message/send', { message: { ...message, taskId: taskIds[1] } }],
    ['message/stream', { message, configuration: { ...configuration, pushNotificationConfig: push } }],
    ['tasks/get', { id: taskIds[0], historyLength: 1 }],
    ['tasks/cancel', { id: taskIds[0], metadata: { a: 1 } }],
    ['tasks/resubscribe', { id: taskIds[2] }],
    ['tasks/pushNotificationConfig/set', { taskId: taskIds[0], pushNotificationConfig: push }],
    ['tasks/pushNotificationConfig/get', { id: taskIds[0] }],
    ['agent/getAuthenticatedExtendedCard', {}],
  ];
}

function oldest({ contextId }: Known): [method: string, params: object][] {
  const message = { role: 'user', parts: [{ type: 'text', text: 'hello' }], metadata: echo };
  const send = {
    id: 'mine',
    sessionId: contextId,
    message,
    historyLength: 1,
    acceptedOutputModes: ['text'],
    metadata: { agent: 'echo' },
  };
  return [
    ['tasks/send', send],
    ['tasks/sendSubscribe', send],
    ['tasks/get', { id: 'mine', historyLength: 1 }],
    ['tasks/cancel', { id: 'mine', reason: 'enough' }],
  ];
}

/** Every method of every family. */
export const callsOf = (known: Known): [method: string, params: object][] => [
  ...newest(known),
  ...older(known),
  ...oldest(known),
];

const MCP_PATHS = ['/mcp', '/agents/echo/mcp'];
const MCP = 'io.modelcontextprotocol';

/** Every method of MCP: of revision 2026-07-28, and of clients that begin with `initialize`. */
function mcpTemplates({ taskIds: [taskId = ''] }: Known): RpcTemplate[] {
  const call = { name: 'echo', arguments: { message: 'hello', data: { a: 1 }, contextId: 'c' } };
  const calls: [method: string, params: Record<string, unknown>, name?: string][] = [
    ['server/discover', {}],
    ['tools/list', { cursor: 'MQ' }],
    ['tools/call', { ...call, requestState: 'x', inputResponses: { a: { action: 'accept' } } }, 'echo'],
    ['tools/call', { name: 'task_status', arguments: { taskId } }, 'task_status'],
    ['tasks/get', { taskId }, taskId],
    ['tasks/update', { taskId, inputResponses: { a: { action: 'accept', content: { a: 1 } } } }, taskId],
    ['tasks/cancel', { taskId }, taskId],
    ['resources/read', { uri: `baton://tasks/${taskId}/artifacts/a` }, `baton://tasks/${taskId}/artifacts/a`],
    ['resources/list', {}],
    ['subscriptions/listen', { taskIds: [taskId] }],
  ];
  const _meta = {
    [`${MCP}/protocolVersion`]: '2026-07-28',
    [`${MCP}/clientCapabilities`]: { extensions: { [`${MCP}/tasks`]: {} }, elicitation: {} },
    progressToken: 1,
    'claudecode/toolUseId': 'use-1',
  };
  const modern = calls.map(([method, params, name]) => ({
    method,
    params: { ...params, _meta },
    headers: {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(name && { 'mcp-name': name }),
    },
  }));
  const initialize = {
    protocolVersion: '2025-06-18',
    capabilities: { elicitation: {} },
    clientInfo: { name: 'c', version: '1' },
  };
  const headers = { 'mcp-protocol-version': '2025-11-25' };
  const legacy = [
    { method: 'initialize', params: initialize },
    { method: 'notifications/initialized', params: {}, headers },
    { method: 'ping', params: {}, headers },
    { method: 'tools/list', params: {}, headers },
    { method: 'tools/call', params: { ...call, _meta: { progressToken: 'p' } }, headers },
  ];
  return MCP_PATHS.flatMap((path) => [...modern, ...legacy].map((each) => ({ path, ...each })));
}

/** Every method of every family at every path, whether it is served there or not. */
export const templatesOf = (known: Known): RpcTemplate[] => [
  ...EVERYWHERE.flatMap((path) => callsOf(known).map(([method, params]) => ({ path, method, params }))),
  ...mcpTemplates(known),
];

/** What is asked with GET, or is no JSON-RPC. */
export const plainPathsOf = ({ taskIds }: Known): [method: string, path: string][] => [
  ['GET', '/.well-known/agent-card.json'],
  ['GET', '/.well-known/agent.json'],
  ['GET', '/agents/echo/.well-known/agent-card.json'],
  ['GET', '/agents/echo/.well-known/agent.json'],
  ['GET', '/v1/tasks?limit=5&cursor='],
  ['GET', `/v1/tasks/${taskIds[0] ?? ''}`],
  ['GET', `/v1/tasks/${taskIds[0] ?? ''}/artifacts?cursor=Mi4x`],
  ['GET', `/v1/tasks/${taskIds[0] ?? ''}/events?since_seq=1`],
  ['POST', `/v1/tasks/${taskIds[0] ?? ''}/cancel`],
  ['GET', '/healthz'],
  ['OPTIONS', '/agents/echo'],
  ['DELETE', '/a2a'],
];
