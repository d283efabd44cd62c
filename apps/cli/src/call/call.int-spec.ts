import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { KEEPS_CONNECTIONS } from '../../../../test/support/server-options.js';
import { EXIT } from '../exit.js';
import { run } from '../program.js';

type Sent = { taskId?: string; contextId?: string; parts: Record<string, unknown>[] };
type Rpc = { id: number; method: string; params: { id?: string; message?: Sent } };
type Answer = (rpc: Rpc, response: ServerResponse, request: IncomingMessage) => void;

let server: Server;
let url: string;
/** What the server does with the next calls, in order. */
let answers: Answer[];

beforeAll(async () => {
  server = createServer(KEEPS_CONNECTIONS, (request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
});

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.headers.authorization !== 'Bearer secret') {
    response.writeHead(401).end();
  } else if (request.url === '/agents/echo/.well-known/agent-card.json') {
    json(response, 200, card());
  } else if (request.method === 'GET') {
    json(response, 404, { error: { message: 'Agent not found' } });
  } else {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    answers.shift()?.(JSON.parse(body) as Rpc, response, request);
  }
}

const json = (response: ServerResponse, status: number, value: unknown): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));

const card = () => ({
  name: 'Echo',
  description: 'x',
  version: '1',
  supportedInterfaces: [{ url: `${url}/agents/echo`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: true },
});

const STATES = ['', 'SUBMITTED', 'WORKING', 'WORKING', 'COMPLETED'];

/** The frames of the task's log from one sequence to another. */
function frames({ id }: Rpc, from: number, to: number): string {
  const frame = (sequence: number): string => {
    const status = { state: `TASK_STATE_${STATES[sequence] ?? ''}` };
    const result = sequence === 1 ? { task: { id: 't', status } } : { statusUpdate: { taskId: 't', status } };
    return `id: ${String(sequence)}\ndata: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`;
  };
  return Array.from({ length: to - from + 1 }, (_, i) => frame(from + i)).join('');
}

const stream = (response: ServerResponse): ServerResponse =>
  response.writeHead(200, { 'content-type': 'text/event-stream' });

/** What a caller sees of one command; options in `args` win over the defaults before them. */
async function baton(command: string, ...args: string[]) {
  return typing([], command, ...args);
}

/** The same, with lines on standard input. */
async function typing(lines: readonly string[], command: string, ...args: string[]) {
  const out: string[] = [];
  const err: string[] = [];
  const terminal = { out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) };
  const cli = {
    source: { BATON_HOME: '/nowhere' },
    terminal,
    stdin: () => Readable.from(lines.map((line) => `${line}\n`)),
  };
  const code = await run([command, '--url', url, '--token', 'secret', ...args], cli);
  return { code, out: out.join('\n').split('\n'), err: err.join('\n') };
}

const LINES = [
  '   1  task      t submitted',
  '   2  status    working',
  '   3  status    working',
  '   4  status    completed',
];

describe('baton send and watch', () => {
  it('miss nothing when the connection breaks in the middle of a frame', async () => {
    let resumedAfter: unknown;
    answers = [
      (rpc, response) =>
        stream(response).write(`${frames(rpc, 1, 2)}id: 3\ndata: {"json`, () => response.destroy()),
      (rpc, response, request) => {
        resumedAfter = request.headers['last-event-id'];
        stream(response).end(frames(rpc, 3, 4));
      },
    ];
    const { code, out, err } = await baton('send', 'echo', 'hello', '--stream');
    expect({ code, out }).toEqual({ code: 0, out: LINES });
    expect(err).toBe('The connection was lost. Continuing after the last event.\nTask t: completed');
    expect(resumedAfter).toBe('2');
  });

  it('wait for a server that starts again', async () => {
    answers = [
      (rpc, response) => stream(response).write(frames(rpc, 1, 3), () => response.destroy()),
      (_, response) => response.writeHead(503).end(),
      (rpc, response) => stream(response).end(frames(rpc, 4, 4)),
    ];
    expect(await baton('watch', 'echo', 't')).toMatchObject({ code: 0, out: LINES });
  });

  it('print the protocol as JSON, one event a line', async () => {
    answers = [(rpc, response) => stream(response).end(frames(rpc, 3, 4))];
    const { out } = await baton('watch', 'echo', 't', '--after', '2', '--json');
    expect(out.map((line) => JSON.parse(line) as unknown)).toEqual([
      { sequence: 3, event: { statusUpdate: { taskId: 't', status: { state: 'TASK_STATE_WORKING' } } } },
      { sequence: 4, event: { statusUpdate: { taskId: 't', status: { state: 'TASK_STATE_COMPLETED' } } } },
    ]);
  });

  it('end with a code of its own when the task fails, after the answer was printed', async () => {
    const status = {
      state: 'TASK_STATE_FAILED',
      message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'no luck' }] },
    };
    answers = [
      ({ id }, response) =>
        json(response, 200, { jsonrpc: '2.0', id, result: { task: { id: 't', status } } }),
    ];
    expect(await baton('send', 'echo', 'x')).toEqual({
      code: EXIT.taskFailed,
      out: ['no luck'],
      err: 'Task t failed: no luck',
    });
  });

  it('attach files and data to a message', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'baton-send-'));
    const file = join(folder, 'note.MD');
    writeFileSync(file, 'hi');
    let sent: Sent | undefined;
    answers = [
      ({ id, params }, response) => {
        sent = params.message;
        json(response, 200, { jsonrpc: '2.0', id, result: { task: taskOf('COMPLETED') } });
      },
    ];
    await baton('send', 'echo', 'x', '--context', 'c', '--data', '{"a":1}', '--file', file);
    expect(sent).toMatchObject({
      contextId: 'c',
      parts: [
        { text: 'x' },
        { data: { a: 1 } },
        { raw: Buffer.from('hi').toString('base64'), filename: 'note.MD', mediaType: 'text/markdown' },
      ],
    });
    rmSync(folder, { recursive: true });
  });

  it.each([
    ['send nobody hello', EXIT.notFound, '', / answers 404: Agent not found\.$/],
    [
      'send echo hello --token wrong',
      EXIT.notAllowed,
      '',
      / refuses the token: give a valid one with --token/,
    ],
    [
      'send echo hello --url http://127.0.0.1:1',
      EXIT.unreachable,
      '',
      /^http:\/\/127\.0\.0\.1:1 does not answer.*: check --url/,
    ],
    ['send echo hello --data 7', EXIT.usage, '', /^--data: this is not a JSON object: /],
    [
      'send echo hello --file no/such.pdf',
      EXIT.usage,
      '',
      /^--file: no\/such\.pdf cannot be read \(ENOENT\)/,
    ],
    ['send echo hello --metadata [', EXIT.usage, '', /^--metadata: this is not a JSON object: /],
    ['watch echo t --after x', EXIT.usage, '', /^--after: "x" is not the number of an event/],
    ['watch echo t', EXIT.notFound, 'Task not found: t', /^The server answers: Task not found: t\.$/],
  ])('%s: one sentence and exit code %s', async (line, exitCode, message, sentence) => {
    answers = [
      ({ id }, response) => json(response, 200, { jsonrpc: '2.0', id, error: { code: -32001, message } }),
    ];
    const [command = '', ...args] = line.split(' ');
    const { code, err } = await baton(command, ...args);
    expect(code).toBe(exitCode);
    expect(err).toMatch(sentence);
  });
});

const taskOf = (state: string) => ({
  id: 't',
  contextId: 'c',
  status: {
    state: `TASK_STATE_${state}`,
    message: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: `now ${state}` }] },
  },
});

describe('baton chat', () => {
  it('is one conversation, in which a line answers what the task before has asked', async () => {
    const sent: Sent[] = [];
    answers = ['INPUT_REQUIRED', 'FAILED', 'COMPLETED'].map((state) => ({ id, params }, response) => {
      sent.push(params.message!);
      json(response, 200, { jsonrpc: '2.0', id, result: { task: taskOf(state) } });
    });
    const { code, out, err } = await typing(['book a flight', '', 'Lisbon', 'thanks'], 'chat', 'echo');
    expect(code).toBe(EXIT.done);
    expect(out).toEqual(['now INPUT_REQUIRED', 'now FAILED', 'now COMPLETED']);
    expect(sent.map(({ taskId = '', contextId = '', parts }) => [taskId, contextId, parts[0]?.text])).toEqual(
      [
        ['', '', 'book a flight'],
        ['t', 'c', 'Lisbon'],
        ['', 'c', 'thanks'],
      ],
    );
    expect(err).toContain('Task t failed. Why: ');
    expect(err).toContain('chat echo --context c');
  });
});
