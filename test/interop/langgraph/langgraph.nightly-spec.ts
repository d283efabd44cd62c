// An agent in Python behind the runtime `remote-a2a`: examples/python-agent, as docs/agents/python.md shows it.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { freePort } from '../../support/ports.js';
import { RawCaller, sendParams } from '../../support/raw-caller.js';
import { Stack } from '../../support/stack.js';
import { describePrepared } from '../../support/prepared.js';

const RUN = join(__dirname, 'run');

/** The agent in Python, on a port and with a folder that outlive its process. */
class PythonAgent {
  private readonly folder = mkdtempSync(join(tmpdir(), 'baton-langgraph-'));
  private process: ChildProcess | undefined;

  constructor(private readonly port: number) {}

  get url(): string {
    return `http://localhost:${this.port}`;
  }

  /** Resolves when it answers. */
  async start(stepSeconds: number): Promise<number> {
    const env = { ...process.env, STEP_SECONDS: String(stepSeconds) };
    const child = spawn('bash', [RUN, String(this.port), this.folder], {
      env,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    this.process = child;
    process.on('exit', this.kill);
    const said: string[] = [];
    for await (const line of createInterface(child.stderr)) {
      said.push(line);
      if (line.includes('Uvicorn running')) {
        // What it says later is not read, and must not stop it.
        child.stderr.resume();
        return child.pid ?? 0;
      }
    }
    throw new Error(`The agent did not start:\n${said.join('\n')}`);
  }

  readonly kill = (): void => void this.process?.kill('SIGKILL');

  async stop(): Promise<void> {
    const child = this.process;
    if (child && child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit');
      this.kill();
      await exited;
    }
    process.off('exit', this.kill);
  }

  clear(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

describePrepared(RUN, 'a LangGraph agent behind Baton', () => {
  let stack: Stack;
  let agent: PythonAgent;
  let caller: RawCaller;

  beforeAll(async () => {
    agent = new PythonAgent(await freePort());
    stack = await Stack.start({ driver: 'postgres', env: { OUTBOUND_ALLOW: '127.0.0.1' } });
    const { token } = await stack.createTenant('agents:call', 'agents:write');
    // A slow machine needs longer to start Python again.
    const config = { card: agent.url, reconnect: '15m' };
    const response = await fetch(`${stack.apis[0]!.url}/v1/agents`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'Writer', description: 'Writes', runtime: 'remote-a2a', config }),
    });
    if (!response.ok) throw new Error(await response.text());
    caller = new RawCaller(stack.url(0, 'writer'), token);
  });
  afterAll(async () => {
    await agent.stop();
    agent.clear();
    await stack.stop();
  });

  it('goes on after a kill -9 of Python: finished steps are not run again, and the caller keeps its stream', async () => {
    // The second step waits until the test kills its process.
    const first = await agent.start(100_000);
    let second = 0;
    const said: string[] = [];
    for await (const { data } of caller.stream('SendStreamingMessage', sendParams('cats'))) {
      const { artifactUpdate, statusUpdate } = data.result ?? {};
      if (artifactUpdate) said.push(`${artifactUpdate.artifact.parts[0].text}`);
      if (statusUpdate) said.push(statusUpdate.status.state as string);
      if (artifactUpdate && second === 0) {
        await agent.stop();
        second = await agent.start(0);
      }
    }
    expect(second).not.toBe(first);
    expect(said).toEqual([
      'TASK_STATE_WORKING',
      `Outline of cats, by process ${first}`,
      `Text about cats, by process ${second}`,
      'TASK_STATE_COMPLETED',
    ]);
  });
});
