// The right answers of an MCP server, and what to send in their place. No SDK: the text of a test goes over the wire unchanged.

/** The default result of each request. */
const RIGHT = {
  initialize: {
    protocolVersion: '2025-06-18',
    capabilities: { tools: {} },
    serverInfo: { name: 'raw', version: '1' },
  },
  'tools/list': { tools: [{ name: 'look', description: 'Looks.', inputSchema: { type: 'object' } }] },
  'tools/call': { content: [{ type: 'text', text: 'seen' }] },
};

/**
 * The message that answers a request. A quirk has one of: `result` or `error` (in place of the right result), `message` (in place of
 * the whole answer; `"$id"` in it becomes the id of the request).
 */
exports.answerTo = function answerTo({ id, method }, quirk = {}) {
  if ('message' in quirk)
    return JSON.parse(JSON.stringify(quirk.message).replaceAll('"$id"', JSON.stringify(id)));
  if ('error' in quirk) return { jsonrpc: '2.0', id, error: quirk.error };
  return { jsonrpc: '2.0', id, result: 'result' in quirk ? quirk.result : (RIGHT[method] ?? {}) };
};
