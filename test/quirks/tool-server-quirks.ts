import type { HttpQuirk, RawStep } from '../support/mcp-server/raw-server.js';
import type { Quirk } from './quirk.js';

/** Kinds of MCP servers: over streamable HTTP with JSON or streams as answers, and programs. */
export const TOOL_SERVER_PEERS = ['http', 'http stream', 'stdio'] as const;

export type ToolServerPeer = (typeof TOOL_SERVER_PEERS)[number];

/** What a program does at a step, besides what `answerTo` knows (test/support/mcp-server/raw-stdio.js). */
interface StdioQuirk {
  exit?: number;
  signal?: string;
  stderr?: string;
  lines?: string;
}

/** What an MCP server does. Its agent calls the tool `look` once. In `model`, what the model reads as its result. */
export interface ToolServerQuirk extends Quirk {
  on: readonly ToolServerPeer[];
  quirks: Partial<Record<RawStep | 'start', HttpQuirk & StdioQuirk>>;
  session?: true;
  /** Further settings of the server. */
  config?: object;
}

const ALL = TOOL_SERVER_PEERS;
const HTTP = ['http', 'http stream'] as const;
const DONE = { task: 'completed', calls: 1, caller: 'Done.' } as const;
const UNUSABLE = { task: 'failed', calls: 0 } as const;
const FAILED = 'The call of look at raw failed:';
const CANT = `The MCP server "raw" cannot be used:`;
const CHECK_URL = 'Check url: it must be the MCP endpoint of the server, often with the path /mcp or /sse';
const SIGN_IN = 'If the server wants a sign-in, put a token into headers';
const LOOK = { name: 'look', inputSchema: { type: 'object' } };
const seen = { type: 'text', text: 'seen' };
const PAGE = '<!DOCTYPE html><html><head><title>Sign in</title></head><body>Hello</body></html>';
const html = (status: number): HttpQuirk => ({
  status,
  body: PAGE,
  headers: { 'content-type': 'text/html' },
});
const result = (value: unknown) => ({ 'tools/call': { result: value } });
const list = (...tools: unknown[]) => ({ 'tools/list': { result: { tools } } });

/** A result that the model reads as a whole. */
const readWhole = (when: string, value: unknown, model: string): ToolServerQuirk => ({
  when,
  on: ALL,
  quirks: result(value),
  ...DONE,
  model,
});

/** A list from which the tool can be used all the same. */
const usable = (when: string, ...tools: unknown[]): ToolServerQuirk => ({
  when,
  on: ALL,
  quirks: list(...tools),
  ...DONE,
  model: 'seen',
});

export const TOOL_SERVER_QUIRKS: readonly ToolServerQuirk[] = [
  ...[-32000, -32001, -32603, 4711].map((code) => ({
    when: `answers a call with the JSON-RPC error ${code}`,
    on: ALL,
    quirks: {
      'tools/call': { error: { code, message: 'Quota exceeded', data: { kind: 'broken', message: 'x' } } },
    },
    ...DONE,
    model: `${FAILED} it answers with the error ${code}: "Quota exceeded"`,
  })),
  {
    when: 'answers a call with a JSON-RPC error without a code',
    on: ALL,
    quirks: { 'tools/call': { error: { message: 'Quota exceeded' } } },
    ...DONE,
    model: `${FAILED} it answers with an error: "Quota exceeded"`,
  },
  {
    when: 'answers a call with an error and the id null',
    on: HTTP,
    quirks: {
      'tools/call': { message: { jsonrpc: '2.0', id: null, error: { code: -32000, message: 'No' } } },
    },
    ...DONE,
    model: `${FAILED} it answers with the error -32000: "No"`,
  },
  {
    when: 'answers a call with status 400 and a JSON-RPC error',
    on: HTTP,
    quirks: {
      'tools/call': {
        status: 400,
        message: { jsonrpc: '2.0', id: null, error: { code: -32602, message: 'No' } },
        headers: { 'content-type': 'application/json' },
      },
    },
    ...DONE,
    model: `${FAILED} it answers with HTTP 400: "-32602 No"`,
  },
  ...[405, 415, 429, 500, 503].map((status) => ({
    when: `answers a call with status ${status} and a web page`,
    on: HTTP,
    quirks: { 'tools/call': html(status) },
    ...DONE,
    model: `${FAILED} it answers with HTTP ${status}: "Sign in"`,
  })),
  ...[401, 403].map((status) => ({
    when: `answers a call with status ${status}`,
    on: HTTP,
    quirks: { 'tools/call': { status, body: 'who are you?' } },
    ...DONE,
    model: `${FAILED} it does not accept the credentials (HTTP ${status}): "who are you?"`,
  })),
  {
    when: 'has lost the session and answers a call with status 404',
    on: HTTP,
    session: true,
    quirks: { 'tools/call': { status: 404, body: 'no session', times: 1 } },
    ...DONE,
    calls: 2,
    model: 'seen',
  },
  {
    when: 'knows no sessions and answers a call with status 404',
    on: HTTP,
    quirks: { 'tools/call': { status: 404, body: 'not here' } },
    ...DONE,
    model: `${FAILED} it answers with HTTP 404: "not here"`,
  },
  {
    when: 'answers a call with a sign-in page',
    on: HTTP,
    quirks: { 'tools/call': html(200) },
    ...DONE,
    model: `${FAILED} it answers with a web page, not as an MCP server: "Sign in"`,
  },
  {
    when: 'answers a call with JSON that is not JSON-RPC',
    on: HTTP,
    quirks: { 'tools/call': { message: { ok: true } } },
    ...DONE,
    model: `${FAILED} its answer is not one of an MCP server: "{"ok":true}"`,
  },
  {
    when: 'answers a call with a message that has neither result nor error',
    on: ALL,
    quirks: { 'tools/call': { message: { jsonrpc: '2.0', id: '$id' } } },
    ...DONE,
    model: `${FAILED} its answer is not one of an MCP server: "{"jsonrpc":"2.0","id":2}"`,
  },
  {
    when: 'answers a call without jsonrpc, and with other members',
    on: ALL,
    quirks: { 'tools/call': { message: { id: '$id', result: { content: [seen] }, error: null, time: 3 } } },
    ...DONE,
    model: 'seen',
  },
  {
    when: 'answers a call in a batch',
    on: ALL,
    quirks: { 'tools/call': { message: [{ jsonrpc: '2.0', id: '$id', result: { content: [seen] } }] } },
    ...DONE,
    model: 'seen',
  },
  {
    when: 'writes media types in capitals, with a charset',
    on: ['http'],
    quirks: {
      'tools/call': {
        headers: { 'content-type': 'Application/JSON; charset=ISO-8859-1' },
        body: Buffer.from(
          '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"caf\u00e9"}]}}',
          'latin1',
        ),
      },
    },
    ...DONE,
    model: 'café',
  },
  {
    when: 'ends its stream in the middle of its answer',
    on: ['http stream'],
    quirks: { 'tools/call': { end: 60 } },
    ...DONE,
    model: `${FAILED} its answer is not one of an MCP server: "{"jsonrpc":"2.0","id":2,"result":{"cont"`,
  },
  {
    when: 'breaks the connection in the middle of its answer',
    on: ['http'],
    quirks: { 'tools/call': { reset: 30 } },
    ...DONE,
    model: `${FAILED} the connection broke in the middle of its answer, so its result is not known`,
  },
  {
    when: 'ends its stream before its answer, once, and the tool is in mayRepeat',
    on: ['http stream'],
    config: { mayRepeat: ['look'] },
    quirks: { 'tools/call': { body: ': thinking\n\n', times: 1 } },
    ...DONE,
    calls: 2,
    model: 'seen',
  },
  {
    when: 'ends its stream before its answer, and the tool is in neverRepeat',
    on: ['http stream'],
    config: { neverRepeat: ['look'] },
    quirks: { 'tools/call': { body: ': thinking\n\n' } },
    ...DONE,
    model: `${FAILED} the connection broke, so the outcome of the call is not known`,
  },
  {
    when: 'ends in a call with exit code 3 and a text on standard error',
    on: ['stdio'],
    config: { neverRepeat: ['look'] },
    quirks: { 'tools/call': { exit: 3, stderr: 'no room\nleft on the disk\n' } },
    ...DONE,
    model: `${FAILED} its program ended with exit code 3 before it answered: "no room left on the disk"`,
  },
  {
    when: 'writes its log to standard output',
    on: ['stdio'],
    quirks: { 'tools/call': { lines: 'calling look\n{"level":30,"msg":"look"}\n' } },
    ...DONE,
    model: 'seen',
  },
  readWhole(
    'answers a call with half of a surrogate pair',
    { content: [{ type: 'text', text: 'seen \ud83d, and more' }] },
    'seen \ufffd, and more',
  ),
  readWhole(
    'answers with structuredContent null beside a text',
    { content: [seen], structuredContent: null },
    'seen',
  ),
  readWhole('answers with _meta null', { content: [seen], _meta: null }, 'seen'),
  readWhole('answers with structuredContent alone', { structuredContent: { n: 3 } }, '{"n":3}'),
  readWhole(
    'answers with the text "3" beside other structuredContent',
    { content: [{ type: 'text', text: '3' }], structuredContent: { n: 4 } },
    '3\n{"n":4}',
  ),
  readWhole(
    'answers with the text "3" beside the same in structuredContent',
    { content: [{ type: 'text', text: '3' }], structuredContent: { result: 3 } },
    '3',
  ),
  readWhole(
    'answers with structuredContent that is a list',
    { content: [seen], structuredContent: [1] },
    'seen\n[1]',
  ),
  readWhole('answers with isError and no content', { isError: true }, 'The tool failed and gave no reason.'),
  readWhole('answers without content', {}, '(The tool gave no output.)'),
  readWhole('answers with one item in place of a list', { content: seen }, 'seen'),
  readWhole('answers with texts in place of items', { content: ['seen'] }, 'seen'),
  readWhole('answers with members of its own in place of content', { n: 3 }, '{"n":3}'),
  readWhole('answers with toolResult (2024-10)', { toolResult: { n: 3 } }, '{"n":3}'),
  readWhole('answers with null', null, '[a result that is not one of MCP: null]'),
  readWhole('answers with a text', 'seen', '[a result that is not one of MCP: "seen"]'),
  readWhole(
    'answers with an item of an unknown type',
    { content: [seen, { type: 'video', uri: 'x' }] },
    'seen\n[an item of the unknown type "video": {"type":"video","uri":"x"}]',
  ),
  readWhole(
    'answers with an image that is not Base64',
    { content: [seen, { type: 'image', data: '!', mimeType: 'image/png' }] },
    'seen\n[an item of type image without data in Base64: {"type":"image","data":"!","mimeType":"image/png"}]',
  ),
  readWhole(
    'answers with an image in capitals, as a data URL',
    { content: [{ type: 'image', data: 'data:image/png;base64,AAEC', mimeType: 'IMAGE/PNG' }] },
    '[file raw_look-1.png (image/png, 3 bytes): the user has been given it]\n' +
      '[you are not shown raw_look-1.png (image/png, 3 bytes): it is the artifact call-1-1-file-1 of the task]',
  ),
  readWhole(
    'answers with a text item without text',
    { content: [seen, { type: 'text' }] },
    'seen\n[a text item without text]',
  ),
  usable('offers a tool whose outputSchema is a list', { ...LOOK, outputSchema: { type: 'array' } }),
  usable('offers a tool with annotations, icons and execution of wrong types', {
    ...LOOK,
    annotations: 3,
    icons: 'x',
    execution: null,
    _meta: [],
    title: 1,
  }),
  usable('offers a tool whose properties are an empty list', {
    name: 'look',
    inputSchema: { type: 'object', properties: [], required: null },
  }),
  usable('offers a tool whose inputSchema has no type', { name: 'look', inputSchema: {} }),
  usable(
    'offers odd tools beside a good one',
    { name: 'a', inputSchema: { type: 'array' } },
    { inputSchema: {} },
    { name: 7 },
    null,
    { name: 'b' },
    LOOK,
    { name: 'c', inputSchema: { type: 'object', properties: { x: 'text' } } },
  ),
  usable('offers another tool whose inputSchema has a type that does not exist', LOOK, {
    name: 'odd',
    inputSchema: { type: 'object', properties: { a: { type: 'strng' } } },
  }),
  usable('offers a tool twice', LOOK, LOOK),
  {
    when: 'ends its list of tools with an empty cursor',
    on: ALL,
    quirks: { 'tools/list': { result: { tools: [LOOK], nextCursor: '' } } },
    ...DONE,
    model: 'seen',
  },
  {
    when: 'gives the same cursor with every page of its list',
    on: ALL,
    quirks: { 'tools/list': { result: { tools: [LOOK], nextCursor: 'again' } } },
    ...DONE,
    model: 'seen',
  },
  {
    when: 'declares no capabilities',
    on: ALL,
    quirks: { initialize: { result: { protocolVersion: '2025-06-18' } } },
    ...DONE,
    model: 'seen',
  },
  {
    when: 'answers tools/list with an error',
    on: ALL,
    quirks: { 'tools/list': { error: { code: -32000, message: 'No' } } },
    ...UNUSABLE,
    caller: `${CANT} it answers with the error -32000: "No"`,
  },
  {
    when: 'answers tools/list without a list',
    on: ALL,
    quirks: { 'tools/list': { result: { tools: {} } } },
    ...UNUSABLE,
    caller: `${CANT} its answer to tools/list has no list of tools: "{"tools":{}}". ${CHECK_URL}`,
  },
  {
    when: 'answers initialize with an error',
    on: ALL,
    quirks: { initialize: { error: { code: -32000, message: 'Set NOTES_TOKEN' } } },
    ...UNUSABLE,
    caller: `${CANT} it answers with the error -32000: "Set NOTES_TOKEN"`,
  },
  {
    when: 'answers initialize with a result that is not one of MCP',
    on: ALL,
    quirks: { initialize: { result: { ok: true } } },
    ...UNUSABLE,
    caller: `${CANT} its answer is not one of an MCP server: "{"ok":true}". ${CHECK_URL}`,
  },
  {
    when: 'is a web site: it answers with a sign-in page',
    on: ['http'],
    quirks: { initialize: html(200), GET: html(200) },
    ...UNUSABLE,
    caller: `${CANT} it answers with a web page, not as an MCP server: "Sign in". ${CHECK_URL}. ${SIGN_IN}`,
  },
  {
    when: 'redirects to a sign-in page at another host',
    on: ['http'],
    quirks: { initialize: { status: 302, headers: { location: 'https://login.example/' } } },
    ...UNUSABLE,
    caller: `${CANT} it redirects to another address (HTTP 302): "Redirect to https://login.example/ not followed". ${CHECK_URL}. ${SIGN_IN}`,
  },
  {
    when: 'has no MCP endpoint at url: it answers with status 404',
    on: ['http'],
    quirks: {
      initialize: { status: 404, body: 'Cannot POST /mcp' },
      GET: { status: 404, body: 'Cannot GET /mcp' },
    },
    ...UNUSABLE,
    caller: `${CANT} it answers with HTTP 404: "Cannot POST /mcp". ${CHECK_URL}`,
  },
  {
    when: 'wants another token',
    on: ['http'],
    quirks: { initialize: { status: 401, body: '{"error":"invalid_token"}' } },
    ...UNUSABLE,
    caller: `${CANT} it does not accept the credentials (HTTP 401): "{"error":"invalid_token"}". Put a token that the server accepts into headers`,
  },
  {
    when: 'ends at its start with exit code 2 and a text on standard error',
    on: ['stdio'],
    quirks: { start: { exit: 2, stderr: 'NOTES_TOKEN is required\n' } },
    ...UNUSABLE,
    caller: `${CANT} its program ended with exit code 2 before it answered: "NOTES_TOKEN is required". Check command, args and env: does the program start, and does it speak MCP on its standard output`,
  },
  {
    when: 'is killed at its start',
    on: ['stdio'],
    quirks: { start: { signal: 'SIGKILL' } },
    ...UNUSABLE,
    caller: `${CANT} its program was ended by SIGKILL before it answered. Check command, args and env: does the program start, and does it speak MCP on its standard output`,
  },
  {
    when: 'does not answer within connectTimeout',
    on: HTTP,
    config: { connectTimeout: '200ms' },
    quirks: { initialize: { silent: true } },
    ...UNUSABLE,
    caller: `${CANT} it gives no answer in time (connectTimeout is 200ms). Raise connectTimeout if it starts slowly, such as a program that is downloaded first`,
  },
];
