import { TaskState } from '@baton/a2a';
import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { LlmBench, summaryOf } from '../../libs/agents/src/runtimes/llm/llm-runtime.fixture.js';
import { McpBench } from '../../libs/agents/src/runtimes/llm/tools/mcp/mcp-tools.fixture.js';
import { RawMcpServer } from '../support/mcp-server/raw-server.js';
import { TOOL_SERVER_QUIRKS, type ToolServerPeer, type ToolServerQuirk } from './tool-server-quirks.js';

const STATES = { completed: TaskState.TASK_STATE_COMPLETED, failed: TaskState.TASK_STATE_FAILED };
const PROGRAM = join(__dirname, '../support/mcp-server/raw-stdio.js');
const CALLS = join(tmpdir(), 'calls');

let model: LlmBench;
const mcp = new McpBench();
beforeAll(async () => {
  model = await LlmBench.start();
});
afterEach(async () => {
  model.reset();
  await mcp.reset();
});
afterAll(async () => {
  await model.stop();
  await mcp.stop();
});

/** A server with quirks: its settings, and how often its tool was called. */
async function serve(peer: ToolServerPeer, { quirks, session }: ToolServerQuirk) {
  if (peer === 'stdio') {
    writeFileSync(CALLS, '');
    mcp.stdioAllow = `${process.execPath} ${PROGRAM}`;
    const args = [PROGRAM, JSON.stringify(quirks), CALLS];
    const calls = (): number => readFileSync(CALLS, 'utf8').split('\n').length - 1;
    // A process starts slowly where the CPU is scarce.
    return { settings: { command: process.execPath, args, connectTimeout: '5m' }, calls };
  }
  const server = await RawMcpServer.start({ quirks, stream: peer === 'http stream', session });
  mcp.atReset(() => server.stop());
  return { settings: { url: server.url }, calls: () => server.calls };
}

/** The task of an agent whose model calls the tool once. */
async function run(settings: object) {
  let tools;
  try {
    ({ tools } = await mcp.open([{ name: 'raw', ...settings }]));
  } catch (error) {
    return { state: STATES.failed, caller: (error as Error).message };
  }
  model.tools.push(...tools);
  model.provider.reply({ calls: [{ name: 'raw_look', input: {} }] }, { text: 'Done.' });
  const { status, artifacts } = summaryOf(await model.say());
  const text = Object.entries(artifacts).findLast(([id]) => id.startsWith('reply-'))?.[1].text;
  const { input } = model.provider.requests.at(-1)?.body as unknown as {
    input: { type: string; output?: unknown }[];
  };
  const read = input.find(({ type }) => type === 'function_call_output')?.output;
  return { state: status?.state, caller: status?.text ?? text, read };
}

const CASES = TOOL_SERVER_QUIRKS.flatMap((quirk) => quirk.on.map((peer) => ({ ...quirk, peer })));

// The table of docs/agents/provider-behaviour.md.
it.each(CASES)('When a tool server ($peer) $when, the task is $task', async ({ peer, ...quirk }) => {
  const { settings, calls } = await serve(peer, quirk);
  const { state, caller, read } = await run({ ...settings, ...quirk.config });
  expect({ state, caller, model: read, calls: calls() }).toEqual({
    state: STATES[quirk.task],
    caller: quirk.caller,
    model: quirk.model,
    calls: quirk.calls,
  });
});
