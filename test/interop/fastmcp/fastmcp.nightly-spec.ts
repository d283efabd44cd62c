// Tools of a server that others wrote, with the tasks and the questions of MCP 2026-07-28. Each attempt of a call has a connection of its
// own, as another worker has.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { Suspension } from '../../../libs/agents/src/suspension.js';
import type { ApprovalAnswer } from '../../../libs/agents/src/approvals.js';
import { ApprovalsPending } from '../../../libs/agents/src/runtimes/llm/approval/approvals-pending.js';
import { McpBench, names, never } from '../../../libs/agents/src/runtimes/llm/tools/mcp/mcp-tools.fixture.js';
import type { RemoteCall } from '../../../libs/agents/src/runtimes/llm/tools/remote-call.js';
import type { ToolResult } from '../../../libs/agents/src/runtimes/llm/tools/tool-sources.js';
import { freePort } from '../../support/ports.js';
import { describePrepared } from '../../support/prepared.js';

const RUN = join(__dirname, 'run');

describePrepared(RUN, 'the tools of a FastMCP server', () => {
  const bench = new McpBench();
  let server: ChildProcess;
  let url: string;

  beforeAll(async () => {
    const port = await freePort();
    url = `http://127.0.0.1:${port}/mcp`;
    server = spawn('bash', [RUN, String(port)], { stdio: ['ignore', 'ignore', 'pipe'] });
    const said: string[] = [];
    for await (const line of createInterface(server.stderr!)) {
      said.push(line);
      if (line.includes('Uvicorn running')) return void server.stderr!.resume();
    }
    throw new Error(`The server did not start:\n${said.join('\n')}`);
  });
  afterAll(async () => {
    if (server.exitCode === null && server.signalCode === null) {
      server.kill('SIGKILL');
      await once(server, 'exit');
    }
    await bench.reset();
    await bench.stop();
  });

  /** Makes a call to its end. `decide` answers each question. */
  async function made(
    name: string,
    input: object,
    decide?: { approved: boolean; input?: unknown },
    signal = never,
  ): Promise<ToolResult & { suspensions: number }> {
    let kept: RemoteCall | undefined;
    let answer: ApprovalAnswer | undefined;
    for (let suspensions = 0; ;) {
      const { tools, close } = await bench.open([{ name: 'fast', url }]);
      const tool = tools.find((each) => each.name === `fast_${name}`);
      if (!tool) throw new Error(`no ${name}`);
      try {
        const keep = async (call: RemoteCall): Promise<void> => void (kept = call);
        const key = `key of ${name}`;
        const context = { id: 'call-1-1', key, lane: 1, signal, kept, keep, ...(answer && { answer }) };
        return { ...(await tool.execute(input, context)), suspensions };
      } catch (error) {
        if (error instanceof ApprovalsPending && decide) {
          const decisions = error.requests.map(({ callId }) => ({
            callId: callId.slice('call-1-1/'.length),
            ...decide,
          }));
          answer = { number: (answer?.number ?? 0) + 1, decisions };
        } else if (error instanceof Suspension) {
          suspensions += 1;
          // A real run sleeps as long as the server says.
          await setTimeout(200);
        } else throw error;
      } finally {
        await close();
      }
    }
  }

  it('are listed, and called', async () => {
    const opened = await bench.open([{ name: 'fast', url }]);
    expect(names(opened).sort()).toEqual(
      ['add', 'greet', 'greet_later', 'report'].map((name) => `fast_${name}`),
    );
    expect(await made('add', { number: 1 })).toMatchObject({ ok: true, content: { result: 2 } });
  });

  it('are called once, if a call becomes a task that is looked at from several workers', async () => {
    const result = await made('report', { city: 'Rome' });
    expect(result).toMatchObject({ ok: true, text: 'Rome, call 1' });
    expect(result.suspensions).toBeGreaterThan(0);
  });

  it('ask a person before they go on, and in a task', async () => {
    const yes = { approved: true, input: { name: 'Ada' } };
    expect(await made('greet', {}, yes)).toMatchObject({ ok: true, text: 'Ada, asked' });
    expect(await made('greet_later', {}, yes)).toMatchObject({ ok: true, text: 'Ada' });
    expect(await made('greet_later', {}, { approved: false })).toMatchObject({ ok: true, text: 'decline' });
  });
});
