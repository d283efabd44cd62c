import { TaskState } from '@baton/a2a';
import { createLogger } from '@baton/telemetry';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text as readText } from 'node:stream/consumers';
import { textTool } from '../../../test/support/mcp-server/script.js';
import { LlmBench } from './runtimes/llm/llm-runtime.fixture.js';
import { call, McpBench } from './runtimes/llm/tools/mcp/mcp-tools.fixture.js';
import {
  type AgentOutput,
  artifactChunk,
  completed,
  filePart,
  status,
  plainTextPart,
  type Turn,
} from './agent-runtime.js';
import type { GuardedTurn } from './secret-guard.js';
import { answerIn, Elsewhere, turnAt } from '../../../test/support/agents/remote.js';
import { collect, firstTurn, MemoryJournal, turnSecrets } from '../../../test/support/agents/turns.js';

const SECRET = 'hunter2/of+the"tenant-4711';
const BEARER = `Bearer ${SECRET}`;
/** How a hostile peer may write it down. */
const SPELLINGS = [
  SECRET,
  encodeURIComponent(SECRET),
  encodeURIComponent(SECRET).toLowerCase(),
  JSON.stringify(JSON.stringify(SECRET)),
  Buffer.from(SECRET).toString('base64'),
  Buffer.from(BEARER).toString('base64'),
  Buffer.from(`user:${SECRET}`).toString('base64url'),
  Buffer.from(`x${BEARER}`).toString('base64'),
  Buffer.from(SECRET).toString('hex'),
  SECRET.replaceAll('"', '&quot;'),
  SECRET.toLowerCase(),
];

/** Decodes what may be an encoded text, so that no spelling is overlooked. */
function expectNoSecret(shown: unknown): void {
  const json = JSON.stringify(shown, (_, value: unknown) =>
    value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value,
  );
  for (const spelling of [...SPELLINGS, '4711', Buffer.from('tenant-4711').toString('base64').slice(0, 12)])
    expect(json).not.toContain(spelling);
}

/** All output of a turn, as the worker stores it. */
const outputsOf = (turn: GuardedTurn, outputs: AsyncIterable<AgentOutput>): Promise<AgentOutput[]> =>
  collect(turn.secrets.scrub(turn, outputs));

async function turnThatRead(...values: string[]): Promise<GuardedTurn> {
  const secrets = turnSecrets(Object.fromEntries(values.map((value, i) => [String(i), value])));
  for (const i of values.keys()) await secrets.get(String(i), []);
  return firstTurn('hi', { secrets });
}

async function* from<T>(items: T[]): AsyncGenerator<T> {
  yield* items;
}

describe('the output of a turn', () => {
  const chunksOf = (turn: Turn, texts: string[], isClosed: boolean): AgentOutput[] =>
    texts.map((text, i) =>
      artifactChunk(
        turn,
        { artifactId: 'a', name: 'a', parts: [plainTextPart(text)] },
        { append: i > 0, lastChunk: isClosed && i === texts.length - 1 },
      ),
    );

  it.each(SPELLINGS)('has no secret in any place: %s', async (spelling) => {
    const turn = await turnThatRead(SECRET);
    const data = { [spelling]: [spelling, { deep: `${spelling}${spelling}` }] };
    const file = filePart(spelling, 'text/plain', Buffer.from(`a ${spelling} b`));
    const artifact = {
      artifactId: spelling,
      name: spelling,
      parts: [plainTextPart(`x ${spelling} y`), file],
    };
    const outputs = [
      artifactChunk(turn, { ...artifact, metadata: data }),
      status(turn, TaskState.TASK_STATE_WORKING, `so ${spelling} it is`),
      completed(turn),
    ];
    const shown = await outputsOf(turn, from(outputs));
    expectNoSecret(shown);
    expect(JSON.stringify(shown)).toMatch(/x .*\[secret\].* y/);
  });

  it.each([1, 2, 3, 7, 11, SECRET.length - 1])(
    'has none of a secret that comes in pieces of %s characters, and all of the rest',
    async (size) => {
      const turn = await turnThatRead(SECRET, 'hunter2/of');
      const said = `One hunt. ${SECRET}, hunter2/of, hunter2 and hun`;
      const pieces = said.match(new RegExp(`.{1,${size}}`, 'gs')) ?? [];
      for (const isClosed of [true, false]) {
        const progress = status(turn, TaskState.TASK_STATE_WORKING, 'working');
        const chunks = chunksOf(turn, pieces, isClosed).flatMap((chunk) => [chunk, progress]);
        const shown = await outputsOf(turn, from([...chunks, completed(turn)]));
        expect(answerIn(shown)).toBe('One hunt. [secret], [secret], hunter2 and hun');
      }
    },
  );

  it('has none of a secret in several parts of one message or chunk', async () => {
    const turn = await turnThatRead(SECRET);
    const halves = [SECRET.slice(0, 9), SECRET.slice(9)].map(plainTextPart);
    const chunk = artifactChunk(turn, { artifactId: 'a', name: 'a', parts: [...halves, plainTextPart('!')] });
    const shown = await outputsOf(turn, from([chunk, status(turn, TaskState.TASK_STATE_FAILED, halves)]));
    expectNoSecret(shown);
    expect(JSON.stringify(shown)).not.toContain(SECRET.slice(9, 20));
    expect(answerIn(shown)).toBe('[secret]!');
  });

  it('is passed on at once, unless it ends like the beginning of a secret', async () => {
    const turn = await turnThatRead(SECRET);
    const outputs = turn.secrets.scrub(turn, from(chunksOf(turn, ['plain', ' text', ' hun', 'ger'], true)));
    const texts: string[] = [];
    for await (const output of outputs) texts.push(answerIn([output]));
    expect(texts).toEqual(['plain', ' text', ' ', 'hunger']);
  });

  it('is untouched in a turn that has read no secret', async () => {
    const turn = firstTurn('hi', { secrets: turnSecrets({ a: SECRET }) });
    const outputs = [...chunksOf(turn, [SECRET, 'x'], true), completed(turn)];
    expect(await outputsOf(turn, from(outputs))).toEqual(outputs);
  });

  it('has errors without secrets, also in their causes, which keep their class', async () => {
    class Odd extends Error {
      readonly body = { header: BEARER };
    }
    const turn = await turnThatRead(SECRET);
    async function* fails(): AsyncGenerator<AgentOutput> {
      yield* chunksOf(turn, ['hun'], false);
      throw new Odd(`no: ${BEARER}`, { cause: new Error(SECRET) });
    }
    const shown: AgentOutput[] = [];
    const error = await (async () => {
      for await (const output of turn.secrets.scrub(turn, fails())) shown.push(output);
    })().catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Odd);
    const { message, stack, body, cause } = error as Odd;
    expectNoSecret([message, stack, body, String(cause), (cause as Error).stack]);
    expect(message).toBe('no: Bearer [secret]');
    expect(answerIn(shown)).toBe('hun');
  });

  it('of a worker has a log without them, from every component', async () => {
    let lines = '';
    const logger = createLogger({ logLevel: 'debug' }, 'worker', { write: (line) => void (lines += line) });
    await turnThatRead(SECRET);
    logger.warn('odd', { err: new Error(BEARER), headers: { 'x-key': SECRET }, said: SPELLINGS });
    expectNoSecret(lines);
    expect(JSON.parse(lines)).toMatchObject({ msg: 'odd', headers: { 'x-key': '[secret]' } });
  });
});

describe('parts of a secret', () => {
  it.each([
    ['the credentials behind Basic', Buffer.from('anna:pass-word-1').toString('base64'), 'pass-word-1'],
    ['the password of credentials', 'anna:pass-word-1', 'pass-word-1'],
    [
      'a line of a key',
      '-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----',
      'hkiG9w0BAQEFAASC',
    ],
  ])('are removed: %s', async (_what, value, part) => {
    const { redactor } = (await turnThatRead(value)).secrets;
    expect(redactor.text(`a ${part} b`)).toBe('a [secret] b');
  });

  it('are found in linear time', async () => {
    const { redactor } = (await turnThatRead('a'.repeat(65_000))).secrets;
    const { held } = redactor.split('a'.repeat(64_999));
    expect(held).toHaveLength(64_999);
    expect(redactor.split(`${'a'.repeat(2_000_000)}b`)).toMatchObject({ held: '' });
  });
});

describe('a hostile model', () => {
  let bench: LlmBench;
  beforeAll(async () => {
    bench = await LlmBench.start();
  });
  afterEach(() => bench.reset());
  afterAll(() => bench.stop());

  const KEY = 'sk-test-4711';
  const run = async (config: object = {}) => {
    const journal = new MemoryJournal();
    const turn = bench.turn({ retries: 0, ...config });
    const stored = { ...turn, journal: turn.secrets.journal(journal) };
    const shown = await outputsOf(turn, bench.runtime.run(stored, new AbortController().signal));
    return JSON.stringify([shown, journal.entries]);
  };

  it('does not give the key away in texts, reasoning, calls of tools and their results', async () => {
    const inputs: unknown[] = [];
    bench.tools.push({
      name: 'take',
      description: 't',
      needsApproval: false,
      repeat: 'again' as const,
      inputSchema: { type: 'object' },
      execute: async (input) => {
        inputs.push(input);
        return { ok: true, content: { got: input } };
      },
    });
    bench.provider.reply(
      { text: ['sk-te', 'st-4', '711 '], calls: [{ name: 'take', input: { header: `Bearer ${KEY}` } }] },
      { text: ['It is ', 's', 'k', '-test-4711', '.'] },
    );
    const all = await run();
    expect(all).not.toContain('4711');
    expect(all).toContain('[secret]');
    expect(JSON.stringify(inputs)).toBe('[{"header":"Bearer [secret]"}]');
    expect(JSON.stringify(bench.provider.requests[1]?.body)).not.toContain('4711');
  });

  it.each([400, 429, 500])('does not give the key away in an error %s', async (code) => {
    bench.provider.reply({ status: code, error: `Incorrect: Bearer ${KEY} ${encodeURIComponent(KEY)}` });
    expect(await run()).not.toContain('4711');
  });
});

describe('a hostile MCP server', () => {
  const bench = new McpBench();
  afterEach(() => bench.reset());
  afterAll(() => bench.stop());

  it('does not give the header away in tools, results, files and errors', async () => {
    bench.secrets.set('tracker', SECRET);
    const resource = {
      uri: `x://${SECRET}`,
      mimeType: 'text/plain',
      blob: Buffer.from(BEARER).toString('base64'),
    };
    const server = await bench.serve({
      authorization: BEARER,
      tools: [
        { ...textTool('echo', BEARER), description: `Knows ${SECRET}` },
        { ...textTool('long', `${'x'.repeat(990)}${SECRET}`) },
        { name: 'file', call: () => ({ content: [{ type: 'resource', resource }] }) },
        {
          name: 'fail',
          call: () => {
            throw new Error(`denied: ${BEARER}`);
          },
        },
      ],
    });
    const headers = { Authorization: { secret: 'tracker', prefix: 'Bearer ' } };
    const opened = await bench.open([{ name: 't', url: server.url, headers, resultLimit: 1000 }]);
    expectNoSecret(opened.tools.map(({ description, inputSchema }) => [description, inputSchema]));
    for (const tool of ['t_echo', 't_long', 't_file', 't_fail']) {
      const result = await call(opened, tool);
      expectNoSecret(result);
      expect(JSON.stringify(result)).not.toContain('hunter2');
    }
  });
});

describe('a hostile agent elsewhere', () => {
  let server: Server;
  let url: string;
  let answer: (id: unknown, response: ServerResponse, request: IncomingMessage) => void;
  const elsewhere = new Elsewhere();
  const headers = { Authorization: { secret: 'key', prefix: 'Bearer ' } };

  beforeAll(async () => {
    server = createServer((request, response) => void serve(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await elsewhere.close();
  });

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === 'GET') {
      const supportedInterfaces = [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }];
      const card = {
        name: 'x',
        description: 'x',
        version: '1',
        capabilities: { streaming: true },
        skills: [],
      };
      response.setHeader('content-type', 'application/json');
      return void response.end(
        JSON.stringify({ ...card, defaultInputModes: [], defaultOutputModes: [], supportedInterfaces }),
      );
    }
    const { id } = JSON.parse(await readText(request)) as { id: unknown };
    answer(id, response, request);
  }

  async function run() {
    const journal = new MemoryJournal();
    const secrets = turnSecrets({ key: SECRET });
    const turn = turnAt(
      url,
      'hi',
      { headers, reconnect: '1s' },
      { secrets, journal: secrets.journal(journal) },
    );
    return [await outputsOf(turn, elsewhere.say(turn)), journal.entries];
  }

  it('does not give the header away in texts, pieces, artifacts, ids and metadata', async () => {
    answer = (id, response, request) => {
      const said = request.headers.authorization ?? '';
      const at = { taskId: `t-${said}`, contextId: `c-${said}` };
      const artifact = (text: string) => ({
        artifactId: 'a',
        name: said,
        parts: [{ text }],
        metadata: { said },
      });
      const events: object[] = [
        { task: { id: at.taskId, contextId: at.contextId, status: { state: 'TASK_STATE_WORKING' } } },
        ...Array.from(said).map((text, i) => ({
          artifactUpdate: { ...at, artifact: artifact(text), append: i > 0 },
        })),
        {
          artifactUpdate: {
            ...at,
            artifact: { ...artifact(''), parts: [{ data: { [said]: said } }] },
            append: true,
          },
        },
        {
          statusUpdate: {
            ...at,
            status: {
              state: 'TASK_STATE_COMPLETED',
              message: { messageId: said, role: 'ROLE_AGENT', parts: [{ text: said }], metadata: { said } },
            },
          },
        },
      ];
      response.setHeader('content-type', 'text/event-stream');
      response.end(
        events.map((result) => `data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`).join(''),
      );
    };
    const all = await run();
    expectNoSecret(all);
    expect(answerIn(all[0] as AgentOutput[])).toContain('Bearer [secret]');
  });

  it.each([-32000, -32603, -32004])('does not give the header away in an error %s', async (code) => {
    answer = (id, response, request) => {
      const message = `denied: ${request.headers.authorization ?? ''}`;
      const error = { code, message, data: [{ '@type': 'x', reason: message }] };
      response.setHeader('content-type', 'application/json');
      response.setHeader('x-said', encodeURIComponent(message));
      response.end(JSON.stringify({ jsonrpc: '2.0', id, error }));
    };
    const all = await run();
    expectNoSecret(all);
    expect(JSON.stringify(all)).toContain('denied: Bearer [secret]');
  });
});
