import fc from 'fast-check';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { openaiChat } from '../support/model-provider/openai-chat.js';
import type { ModelRequest } from '../support/model-provider/reply.js';
import { hostileChanges, objectSchema } from './hostile-values.js';
import { junk, oddText } from './junk.js';
import { type Mutation, mutate } from './mutate.js';
import { type RecordedAnswer, recordedAnswer, textOf } from './recorded-answers.js';
import { type Manner, type PeerRequest, type PeerScript, manner, sendOddly } from './odd-peer.js';

/** A program that the workers of the run may start. */
export const PROGRAM = join(__dirname, '../support/mcp-server/raw-stdio.js');

const STEPS = [
  'initialize',
  'tools/list',
  'tools/call',
  'notifications/initialized',
  'GET',
  'DELETE',
] as const;
type Step = (typeof STEPS)[number];

/** An MCP server that is odd at one of its steps. */
export interface ToolCase {
  server: object;
  step: Step;
  changes: Mutation[];
  manner: Manner;
  inStream: boolean;
  tools: object[];
  result: object;
  /** The cursor of the next page in a page of the list; undefined = it is the last. */
  nextCursor: string | undefined;
  /** The model's input of a tool. */
  input: string;
  /** The answer to calls, in place of `result`. */
  recorded: RecordedAnswer | undefined;
  /** The server is a program, which is odd in `recorded` alone. */
  isProgram: boolean;
}

const tool = fc.record(
  {
    name: fc.oneof(fc.constantFrom('look', 'look', 'a b', '', 'x'.repeat(300)), oddText),
    description: fc.oneof(oddText, fc.constant('d'.repeat(200_000))),
    inputSchema: fc.oneof(fc.constant({ type: 'object' }), objectSchema),
    outputSchema: objectSchema,
    annotations: junk,
  },
  { requiredKeys: ['name', 'inputSchema'] },
);
const MANY_TOOLS = Array.from({ length: 1_200 }, (_, n) => ({
  name: `t${n}`,
  inputSchema: { type: 'object' },
}));

const content = fc.oneof(
  oddText.map((text) => ({ type: 'text', text })),
  fc.constantFrom(
    { type: 'text', text: 'x'.repeat(1_100_000) },
    { type: 'image', data: 'AAEC', mimeType: 'image/png' },
    { type: 'image', data: '!!! no base64 !!!', mimeType: '' },
    { type: 'audio', data: 'A'.repeat(3_000_001), mimeType: 'a/b' },
    { type: 'resource_link', uri: 'file:///etc/passwd', name: 'x' },
    { type: 'resource', resource: { uri: 'urn:a', text: 'x' } },
    { type: 'resource', resource: { uri: 'urn:a', blob: '====' } },
    { type: '__proto__' },
  ),
);

export const toolCase: fc.Arbitrary<ToolCase> = fc.record({
  server: fc.constantFrom(
    {},
    { optional: true },
    { allow: ['l*k', '*a*b*'] },
    { approval: 'all' },
    { transport: 'http' },
    { transport: 'sse' },
    { neverRepeat: ['*'], resultLimit: 1_000 },
    { mayRepeat: ['*'] },
  ),
  step: fc.constantFrom(...STEPS, 'tools/list', 'tools/call', 'tools/call'),
  changes: hostileChanges,
  manner,
  inStream: fc.boolean(),
  tools: fc.oneof(
    { weight: 5, arbitrary: fc.array(tool, { minLength: 1, maxLength: 4 }) },
    { weight: 1, arbitrary: fc.constant(MANY_TOOLS) },
  ),
  result: fc.record(
    {
      content: fc.oneof(
        { weight: 5, arbitrary: fc.array(content, { maxLength: 4 }) },
        { weight: 1, arbitrary: content.map((one) => Array.from({ length: 250 }, () => one)) },
      ),
      structuredContent: junk,
      isError: fc.boolean(),
      _meta: junk,
    },
    { requiredKeys: ['content'] },
  ),
  nextCursor: fc.option(fc.constantFrom('', 'same', 'x'.repeat(100_000)), { nil: undefined, freq: 3 }),
  input: fc.constantFrom(
    '{}',
    '{}',
    '{"value":7}',
    '{"__proto__":1}',
    '{',
    '[]',
    '{"value":"aaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}',
  ),
  recorded: fc.option(recordedAnswer, { nil: undefined, freq: 1 }),
  isProgram: fc.nat(5).map((n) => n === 0),
});

/** How often each tool was called. */
export type CallCounts = Map<string, number>;

/** The program of a case that has one; it adds a line to the file for each call. */
export const programOf = ({ recorded }: ToolCase, file: string): { command: string; args: string[] } => {
  const quirks = recorded ? { 'tools/call': { raw: textOf(recorded, 'lines') } } : {};
  return { command: process.execPath, args: [PROGRAM, JSON.stringify(quirks), file] };
};

/** A call is made once. It is made again only if the connection broke before an answer, and the settings allow it. */
export function repeated({ server }: ToolCase, counts: CallCounts): string | undefined {
  const most = 'mayRepeat' in server ? 2 : 1;
  const found = [...counts].find(([, times]) => times > most);
  return found && `the tool ${found[0].slice(0, 40)} was called ${found[1]} times`;
}

/** Model and MCP server of a case: the model calls the first two tools that it is given, and then ends its answer. */
export const toolScript =
  (one: ToolCase, counts: CallCounts): PeerScript =>
  async (request, response) => {
    if (request.path.startsWith('/mcp')) return answerMcp(one, counts, request, response);
    const { tools = [], messages = [] } = request.body as {
      tools?: { function: { name: string } }[];
      messages?: { role: string }[];
    };
    const calls = tools.slice(0, 2).map(({ function: { name } }) => ({ name, input: one.input }));
    const isAsked = messages.at(-1)?.role === 'user' && calls.length > 0;
    const events = openaiChat.events(
      isAsked ? { calls } : { text: 'done' },
      request as unknown as ModelRequest,
    );
    const text = events.map(
      ({ data }) => `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`,
    );
    await sendOddly(response, { kind: 'plain', at: 0 }, { type: 'text/event-stream', text: text.join('') });
  };

async function answerMcp(
  one: ToolCase,
  counts: CallCounts,
  request: PeerRequest,
  response: ServerResponse,
): Promise<void> {
  const message = (request.body ?? {}) as { id?: unknown; method?: string; params?: { name?: string } };
  const step = request.method === 'POST' ? message.method : request.method;
  const isOdd = step === one.step;
  // A redirected call has not been made.
  if (step === 'tools/call' && !(isOdd && one.manner.kind === 'redirect')) {
    const name = message.params?.name ?? '';
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  if (!isOdd && (request.method !== 'POST' || message.id === undefined)) {
    return void response.writeHead(request.method === 'POST' ? 202 : 405).end();
  }
  const right = { jsonrpc: '2.0', id: message.id, result: resultOf(one, step) };
  const said = isOdd ? mutate(right, one.changes) : right;
  const bytes =
    step === 'tools/call' && one.recorded
      ? textOf(one.recorded, one.inStream ? 'stream' : 'json')
      : undefined;
  const json = (JSON.stringify(said) as string | undefined) ?? '';
  const text = bytes?.replaceAll('$id', String(message.id)) ?? json;
  const key = /sk-[\w-]+/.exec(JSON.stringify(request.headers))?.[0];
  const answer = one.inStream
    ? { type: 'text/event-stream', text: bytes === undefined ? `event: message\ndata: ${text}\n\n` : text }
    : { type: 'application/json', text };
  await sendOddly(response, isOdd ? one.manner : { kind: 'plain', at: 0 }, {
    ...answer,
    ...(key && { key }),
  });
}

function resultOf({ tools, nextCursor, result }: ToolCase, step: string | undefined): object {
  if (step === 'initialize') {
    const serverInfo = { name: 'odd', version: '1' };
    return { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo };
  }
  if (step === 'tools/list') return { tools, ...(nextCursor !== undefined && { nextCursor }) };
  return step === 'tools/call' ? result : {};
}
