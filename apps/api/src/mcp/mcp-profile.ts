import { type Codec, defineProfile, type OperationCall, ProtocolError, requestedTaskId } from '@baton/a2a';

/**
 * The codec of calls over MCP. It does not encode results and events: their form depends on the client, so
 * `McpOperations` and `ToolStream` write them.
 */
export const MCP_CODEC: Codec = {
  version: '1.0',
  framing: { enveloped: true },
  rules: {},
  methods: [],
  hasMethod: () => false,
  isStreaming: () => false,
  decode: (method) => {
    throw ProtocolError.methodNotFound(method);
  },
  encodeResult: (_operation, result) => result,
  streamEncoder: () => (item) => [{ sequence: item.sequence, result: item }],
  encodeItem: (item) => item,
};

/** Codec for the answer of a person to an elicitation: a model cannot forge it. */
export const ANSWERING_CODEC: Codec = { ...MCP_CODEC, rules: { approvals: 'by-message' } };

/** Codec for a cancel because the caller has closed its stream. The task records this reason. */
export const CLOSING_CODEC: Codec = { ...MCP_CODEC, rules: { cancelMetadata: 'kept' } };

/** Codec for the status of a task, now or at each change over all its turns. */
export const STATUS_CODEC: Codec = {
  ...MCP_CODEC,
  rules: { artifacts: 'left-out', streamEnds: 'with-task' },
};

/** The tool or the path names the agent. Otherwise the task does. */
function chooseAgent({ path, call }: { path?: string; call: OperationCall }) {
  if (path !== undefined) return { by: 'name', name: path } as const;
  return { by: 'task', taskId: requestedTaskId(call) ?? '' } as const;
}

/** How operations behave for callers over MCP. */
export const MCP_PROFILE = defineProfile({
  name: 'mcp',
  paths: [],
  codecs: [MCP_CODEC],
  versions: ['1.0'],
  parts: 'input-modes',
  chooseAgent,
  rules: {
    reply: 'task',
    agentThrew: 'failed-task',
    wait: 'limited',
    streamWait: 'limited',
    cancelAgain: 'returns-it',
    // A model calls the tools. The answers of persons come with `ANSWERING_CODEC`.
    approvals: 'refused',
    push: 'refused',
  },
});
