import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { PATIENT, startMcpServer, type TestMcpServer } from '../support/mcp-server/mcp-server.js';
import { says } from '../support/mcp-server/script.js';
import { type ModelRequest, ModelProvider } from '../support/model-provider/model-provider.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack, type TestTenant } from '../support/stack.js';
import { type Answer, exchange } from '../support/wire.js';

const WINDOW = 128_000;
const PAGES = 50;
const PAGE = 40_000;

let stack: Stack;
let tenant: TestTenant;
let provider: ModelProvider;
let server: TestMcpServer;
beforeAll(async () => {
  const page = (): string => `page ${server.calls.length} `.repeat(PAGE).slice(0, PAGE);
  [provider, server] = await Promise.all([
    ModelProvider.start(),
    startMcpServer({ tools: [{ name: 'look', call: () => says(page()) }] }),
  ]);
  stack = await Stack.start({
    driver: 'postgres',
    apis: 1,
    workers: 1,
    env: {
      OUTBOUND_ALLOW: '127.0.0.1',
      BATON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64'),
      MODEL_PRICES: JSON.stringify({ 'openai-compatible/*': { input: 1, output: 10 } }),
      ...CRASH_SETTINGS,
    },
  });
  tenant = await stack.createTenant();
  const mcp = [{ ...PATIENT, name: 'desk', url: server.url, mayRepeat: 'all' }];
  const config = { model: 'openai-compatible/m', baseUrl: provider.url, steps: 60, tools: { mcp } };
  const agent = { slug: 'reader', name: 'reader', description: 'Reads', runtime: 'llm', config };
  expect((await rest('POST', '/v1/agents', agent)).status).toBe(201);
});
afterAll(async () => {
  await stack.stop();
  await Promise.all([provider.stop(), server.stop()]);
});

function rest(method: string, path: string, body?: object): Promise<Answer> {
  const headers = { authorization: `Bearer ${tenant.token}`, 'content-type': body && 'application/json' };
  return exchange(stack.apis[0]!.url, { method, path, headers, ...(body && { body }) });
}

const isSummary = ({ body }: ModelRequest): boolean => !('tools' in body);

it('a task of 50 calls with 40 KB each stays within the context of its model, and pays a summary once', async () => {
  let refused = 0;
  let killed: Promise<void> | undefined;
  provider.answer((request) => {
    const tokens = Math.ceil(JSON.stringify(request.body).length / 4);
    const usage = { input: tokens, output: 20 };
    if (tokens > WINDOW) {
      refused += 1;
      return { status: 400, error: `This model's maximum context length is ${WINDOW} tokens` };
    }
    if (isSummary(request)) return { text: 'SUMMARY', usage };
    // The first call after a summary: its worker is killed while it waits.
    if (!killed && provider.requests.some(isSummary)) {
      killed = stack
        .killWorkers()
        .then(() => stack.addWorker())
        .then(() => undefined);
      return { text: '', fault: { kind: 'stall', after: 0 } };
    }
    return server.calls.length < PAGES
      ? { calls: [{ name: 'desk_look', input: {} }], usage }
      : { text: 'I have read all.', usage };
  });
  const answer = await new RawCaller(stack.url(0, 'reader'), tenant.token).call(
    'SendMessage',
    sendParams('Read all pages about Bern'),
  );
  await killed;
  const { id, status } = answer.result!.task as { id: string; status: { state: string } };
  expect(status.state).toBe('TASK_STATE_COMPLETED');
  expect(killed).toBeDefined();
  expect({ pages: server.calls.length, refused }).toEqual({ pages: PAGES, refused: 0 });
  const last = JSON.stringify(provider.requests.at(-1)!.body);
  expect(last).toContain('Read all pages about Bern');
  expect(last).toContain('SUMMARY');

  const { model_calls: calls, spans } = (await rest('GET', `/v1/tasks/${id}/trace`)).json as {
    model_calls: { is_summary: boolean; cost: number; input_tokens: number }[];
    spans: { kind: string; entry?: number; model_call?: number }[];
  };
  const summaries = calls.filter(({ is_summary: is }) => is);
  expect(summaries.length).toBeGreaterThan(1);
  expect(summaries).toHaveLength(provider.requests.filter(isSummary).length);
  for (const { cost, input_tokens: tokens } of summaries) expect(cost).toBeCloseTo((tokens + 200) / 1e6, 6);
  const span = spans.find(({ model_call: call }) => call !== undefined && calls[call]!.is_summary);
  const said = await rest('GET', `/v1/tasks/${id}/trace/${span?.entry}`);
  expect(said.json).toMatchObject({ model: { text: 'SUMMARY' } });
});
