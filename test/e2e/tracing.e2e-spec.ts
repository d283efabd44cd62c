import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DRIVERS } from '../support/index.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { OtlpReceiver, type ReceivedSpan } from '../support/otlp-receiver.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { RemoteAgent } from '../support/remote-agent/remote-agent.js';
import { Stack } from '../support/stack.js';

const TENANT = 'tenant-1';
const TRACE = '0af7651916cd43dd8448eb211c80319c';
const CALLER_SPAN = 'b7ad6b7169203331';
const LONG_MS = '600000';
const SECRET_WORDS = 'the launch code is 0000';
const HOOK = join(__dirname, '../support/loads-telemetry.fixture.cjs');

const folder = mkdtempSync(join(tmpdir(), 'baton-tracing-'));
const LOADS_FILE = join(folder, 'on');
let collector: OtlpReceiver;
let provider: ModelProvider;
let remote: RemoteAgent;
let stack: Stack;
let token: string;

beforeAll(async () => {
  collector = await OtlpReceiver.start();
  provider = await ModelProvider.start();
  remote = await RemoteAgent.start({ version: '1.0' });
  stack = await Stack.start({
    driver: DRIVERS[0]!,
    env: {
      NODE_OPTIONS: `--require ${HOOK}`,
      LOADS_FILE,
      OUTBOUND_ALLOW: '127.0.0.1',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20of-the-collector',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      OTEL_BSP_SCHEDULE_DELAY: '50',
      // What a busy collector does not take in ten seconds, the default, is lost.
      OTEL_BSP_EXPORT_TIMEOUT: LONG_MS,
      OTEL_BLRP_EXPORT_TIMEOUT: LONG_MS,
      OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: LONG_MS,
      OTEL_EXPORTER_OTLP_LOGS_TIMEOUT: LONG_MS,
      OTEL_METRIC_EXPORT_INTERVAL: '1000',
    },
  });
  ({ token } = await stack.createTenant());
  const config = { model: 'openai-compatible/m', baseUrl: provider.url, agents: ['far'] };
  await create('lead', { runtime: 'llm', config });
  await create('far', { runtime: 'remote-a2a', config: { card: remote.cardUrl } });
});
afterAll(async () => {
  await stack.stop();
  await Promise.all([provider.stop(), remote.kill()]);
  collector.stop();
  rmSync(folder, { recursive: true });
});

async function create(slug: string, about: object): Promise<void> {
  const file = join(folder, `${slug}.json`);
  writeFileSync(file, JSON.stringify({ name: slug, description: `The ${slug}`, ...about }));
  await stack.baton('agents', 'create', '--tenant', TENANT, '--file', file, '--slug', slug);
}

const named = (name: string, parentId: string) => (span: ReceivedSpan) =>
  span.name === name && span.parentId === parentId;

it('shows one trace from the caller through API, queue, runs, models and tools to child and remote agents', async () => {
  provider.answer(({ body }) => {
    const { messages } = body as { messages: { role: string }[] };
    const hasResult = messages.some(({ role }) => role === 'tool');
    if (hasResult) return { text: 'done', usage: { input: 12, output: 3 } };
    return { calls: [{ name: 'ask_far', input: { message: 'count 2' } }], usage: { input: 7, output: 2 } };
  });
  const caller = new RawCaller(stack.url(0, 'lead'), token).with({
    traceparent: `00-${TRACE}-${CALLER_SPAN}-01`,
  });
  const { result } = await caller.call('SendMessage', sendParams(SECRET_WORDS));
  expect(result?.task.status.state).toBe('TASK_STATE_COMPLETED');
  const taskId = result?.task.id as string;

  const call = await collector.span(named('SendMessage', CALLER_SPAN));
  expect(call).toMatchObject({
    service: 'baton-api',
    kind: 'SERVER',
    traceId: TRACE,
    status: 'UNSET',
    attributes: { 'gen_ai.agent.name': 'lead', 'baton.task.id': taskId, 'baton.profile': 'spec' },
  });

  // The run was suspended while the child worked: both attempts belong to the call.
  const attempt = (number: number) =>
    collector.span(
      (span) =>
        named('invoke_agent lead', call.spanId)(span) && span.attributes['baton.run.attempt'] === number,
    );
  const [first, second] = [await attempt(1), await attempt(2)];
  expect(first).toMatchObject({ service: 'baton-worker', attributes: { 'baton.run.suspended': true } });
  expect(second.attributes).toMatchObject({ 'baton.task.state': 'TASK_STATE_COMPLETED' });
  expect(await collector.span(named('receive runs', call.spanId))).toMatchObject({ kind: 'CONSUMER' });

  // The commits that the caller waits for. No other batch of a stream is a span.
  for (const [name, parent] of [
    ['store turn', call],
    ['claim run', call],
    ['end turn', second],
  ] as const) {
    expect(await collector.span(named(name, parent.spanId))).toMatchObject({
      kind: 'CLIENT',
      status: 'UNSET',
    });
  }

  const asked = await collector.span(named('chat m', first.spanId));
  expect(asked).toMatchObject({
    kind: 'CLIENT',
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai-compatible',
      'gen_ai.request.model': 'm',
      'gen_ai.response.finish_reasons': ['tool-calls'],
      'gen_ai.usage.input_tokens': 7,
      'gen_ai.usage.output_tokens': 2,
    },
  });
  await collector.span(named('chat m', second.spanId));

  const tool = await collector.span(named('execute_tool ask_far', first.spanId));
  expect(tool.attributes).toMatchObject({ 'gen_ai.tool.name': 'ask_far', 'baton.suspended': true });
  const child = await collector.span(named('invoke_agent far', tool.spanId));
  const outside = await collector.span(named('invoke_agent far', child.spanId));
  expect(outside).toMatchObject({ kind: 'CLIENT', attributes: { 'server.address': '127.0.0.1' } });
  const sent = remote.asked.filter(
    ({ headers }) => headers.traceparent === `00-${TRACE}-${outside.spanId}-01`,
  );
  expect(sent.length).toBeGreaterThan(0);

  expect(collector.headers[0]).toMatchObject({ authorization: 'Bearer of-the-collector' });
  // No content of a message is in a span.
  expect(JSON.stringify(collector.spans)).not.toMatch(/launch code|count 2|done/);
  expect(collector.spans.filter(({ traceId }) => traceId !== TRACE)).toEqual([]);
  expect(stack.apis[0]?.log()).toMatch(new RegExp(`"traceId":"${TRACE}".*"msg":"request"`));

  // Prometheus finds the trace by the duration.
  const accept = 'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2';
  const metrics = await fetch(`${stack.apis[0]?.managementUrl}/metrics`, { headers: { accept } });
  expect(await metrics.text()).toMatch(
    new RegExp(
      `baton_call_duration_seconds_bucket{.*operation="sendMessage".*} 1 # {trace_id="${TRACE}",span_id="${call.spanId}"}`,
    ),
  );
});

it('sends metrics and log lines to the same collector, by the same setting', async () => {
  const caller = new RawCaller(stack.url(0), token);
  await caller.call('SendMessage', sendParams(SECRET_WORDS));
  const durations = await collector.point(
    ({ name, attributes, value }) =>
      name === 'baton_call_duration_seconds' &&
      attributes.operation === 'sendMessage' &&
      attributes.error === 'none' &&
      value > 0,
  );
  expect(durations).toMatchObject({ service: 'baton-api', kind: 'histogram', temporality: 2 });
  expect(durations.counts).toHaveLength(durations.bounds.length + 1);
  expect(durations.counts.reduce((sum, count) => sum + count)).toBe(durations.value);
  expect(durations.counts.every((count) => count >= 0)).toBe(true);
  expect(durations.sum).toBeGreaterThan(0);
  const appended = await collector.point(
    ({ name, value }) => name === 'baton_events_appended_total' && value > 0,
  );
  expect(appended).toMatchObject({ service: 'baton-worker', kind: 'sum', isMonotonic: true, temporality: 2 });
  expect(
    await collector.point(({ name, value }) => name === 'baton_live_workers' && value > 0),
  ).toMatchObject({
    kind: 'gauge',
  });

  const line = await collector.log(({ message, traceId }) => message === 'request' && traceId === TRACE);
  expect(line).toMatchObject({
    service: 'baton-api',
    level: 'info',
    severity: 9,
    attributes: { tenant: TENANT, agent: 'lead', status: 200 },
  });
  expect(line.spanId).toBe((await collector.span(named('SendMessage', CALLER_SPAN))).spanId);
  await collector.log(({ message, service }) => message === 'worker is ready' && service === 'baton-worker');
  expect(JSON.stringify([collector.logs, collector.points])).not.toMatch(/launch code/);
});

it('begins a trace for a caller that sends none, and names what the caller did wrong', async () => {
  const before = collector.spans.length;
  const caller = new RawCaller(stack.url(0), token);
  await caller.call('SendMessage', sendParams('hi'));
  await caller.call('GetTask', { id: 'none' });
  const call = await collector.span((span) => span.name === 'SendMessage' && span.parentId === '');
  await collector.span(named('invoke_agent echo', call.spanId));
  expect(await collector.span(({ name }) => name === 'GetTask')).toMatchObject({
    status: 'UNSET',
    attributes: { 'error.type': 'task-not-found' },
  });
  expect(collector.spans.length).toBeGreaterThan(before);
});

it('follows the decision of a caller that does not sample, and still passes the trace on', async () => {
  const traceId = 'c'.repeat(32);
  const asked = remote.asked.length;
  const caller = new RawCaller(stack.url(0, 'far'), token).with({
    traceparent: `00-${traceId}-${'d'.repeat(16)}-00`,
  });
  const { result } = await caller.call('SendMessage', sendParams('count 1'));
  expect(result?.task.status.state).toBe('TASK_STATE_COMPLETED');
  const headers = remote.asked.slice(asked).map((request) => String(request.headers.traceparent));
  expect(headers.length).toBeGreaterThan(0);
  for (const header of headers) expect(header).toMatch(new RegExp(`^00-${traceId}-[\\da-f]{16}-00$`));
  expect(collector.spans.filter((span) => span.traceId === traceId)).toEqual([]);
});

it('loads nothing of OpenTelemetry while it is off', async () => {
  const loads = join(folder, 'off');
  const api = await stack.addApi({ OTEL_EXPORTER_OTLP_ENDPOINT: '', LOADS_FILE: loads });
  const caller = new RawCaller(`${api.url}/agents/echo`, token);
  expect((await caller.call('SendMessage', sendParams('hi'))).result).toBeDefined();
  expect(existsSync(loads)).toBe(false);
  // The other processes have loaded it.
  for (const program of ['apps/api/src/main.js', 'apps/worker/src/main.js'])
    expect(readFileSync(LOADS_FILE, 'utf8')).toContain(program);
});
