import { TaskState, endsTurn } from '@baton/a2a';
import { Logger, Metrics } from '@baton/telemetry';
import { AgentEvent, type AgentExecutor } from '@a2a-js/sdk/server';
import { RemoteAgent } from '../../../test/support/remote-agent/remote-agent.js';
import { Outbound } from '@baton/outbound';
import { type AgentOutput, artifactChunk, completed, plainTextPart, type Turn } from './agent-runtime.js';
import { type AgentRuntime, RuntimeTable } from './runtime-table.js';
import type { GuardedTurn } from './secret-guard.js';
import { stepsOf } from './author/steps-of.js';
import { BUILTIN_AGENTS } from './builtins.js';
import { assertConfig } from './runtime-configs.js';
import { EchoRuntime } from './runtimes/echo/echo-runtime.js';
import { ExecutorRuntime } from './runtimes/executor/executor-runtime.js';
import { indexOf } from './runtimes/index-agent/index-runtime.fixture.js';
import { LlmBench, toolOf } from './runtimes/llm/llm-runtime.fixture.js';
import { LlmRuntime } from './runtimes/llm/llm-runtime.js';
import { RemoteA2aRuntime } from './runtimes/remote-a2a/remote-a2a-runtime.js';
import { RemoteConnector } from './runtimes/remote-a2a/remote-connector.js';
import { converseHere } from '../../../test/support/agents/executors.js';
import {
  FixedAgents,
  agent,
  collect,
  firstTurn,
  summary,
  userMessage,
} from '../../../test/support/agents/turns.js';

/** The code that the executor runtime runs here: five chunks, then completed. A cancel stops it at once. */
class ChunkExecutor implements AgentExecutor {
  private canceled = false;

  async execute(...[, bus]: Parameters<AgentExecutor['execute']>): Promise<void> {
    const turn = firstTurn('hi');
    for (let i = 0; i < 5 && !this.canceled; i++) {
      publish(
        bus,
        artifactChunk(turn, { artifactId: 'a', name: 'a', parts: [plainTextPart('x')] }, { append: i > 0 }),
      );
      await Promise.resolve();
    }
    if (!this.canceled) publish(bus, completed(turn));
  }

  cancelTask(): Promise<void> {
    this.canceled = true;
    return Promise.resolve();
  }
}

const publish = (bus: Parameters<AgentExecutor['execute']>[1], { $case, value }: AgentOutput): void =>
  bus.publish((AgentEvent[$case] as (data: unknown) => Parameters<typeof bus.publish>[0])(value));

/** The same with its chunks between durable steps. */
class StepExecutor implements AgentExecutor {
  async execute(...[request, bus]: Parameters<AgentExecutor['execute']>): Promise<void> {
    const turn = firstTurn('hi');
    for (let i = 0; i < 3; i++) {
      const text = await stepsOf(request).step('chunk', () => `x${i}`);
      publish(
        bus,
        artifactChunk(turn, { artifactId: 'a', name: 'a', parts: [plainTextPart(text)] }, { append: i > 0 }),
      );
    }
    publish(bus, completed(turn));
  }

  cancelTask(): Promise<void> {
    return Promise.resolve();
  }
}

const outbound = new Outbound({ outboundAllow: ['127.0.0.1'] });
const connector = new RemoteConnector();
let elsewhere: RemoteAgent;
beforeAll(async () => {
  elsewhere = await RemoteAgent.start({ version: '1.0' });
});
afterAll(async () => {
  await elsewhere.kill();
  await outbound.onApplicationShutdown();
});

function remote(turn: Turn, signal: AbortSignal): AsyncIterable<AgentOutput> {
  const { definition, ...far } = agent('far', 'remote-a2a');
  const settled = { ...definition, config: { card: elsewhere.url } };
  const runtime = new RemoteA2aRuntime(connector, Logger.silent(), new Metrics());
  return runtime.run({ ...turn, outbound, agent: { ...far, definition: settled } }, signal);
}

/** Every runtime with a message that makes it send output. */
const RUNTIMES: Record<
  string,
  { run: AgentRuntime['run']; metadata?: Record<string, unknown>; text?: string }
> = {
  echo: { run: (...turn) => new EchoRuntime().run(...turn), metadata: { echo: { chunks: 5 } } },
  executor: { run: (turn, signal) => converseHere(new ChunkExecutor(), turn, signal, Logger.silent()) },
  'executor (with steps)': {
    run: (turn, signal) => converseHere(new StepExecutor(), turn, signal, Logger.silent()),
  },
  index: {
    run: (...turn) => indexOf(new FixedAgents([agent('echo')])).run(...turn),
  },
  llm: { run: (turn, signal) => bench.runtime.run({ ...turn, agent: bench.turn().agent }, signal) },
  'remote-a2a': { run: remote, text: 'count 5' },
};

/** Where the llm runtime has its model from. */
let bench: LlmBench;
beforeAll(async () => {
  bench = await LlmBench.start();
  bench.tools.push(toolOf('weather', () => 'sun'));
  const calls = [{ name: 'weather', input: { city: 'Bern' } }];
  bench.provider.answer(({ body }) =>
    JSON.stringify(body).includes('function_call_output') ? { text: 'It is sunny.' } : { calls },
  );
});
afterAll(() => bench.stop());

describe.each(Object.entries(RUNTIMES))('the %s runtime', (_, { run, metadata, text = 'hello' }) => {
  const turn = (fields: Partial<GuardedTurn> = {}): GuardedTurn =>
    firstTurn(userMessage(text, { metadata }), fields);
  const never = new AbortController().signal;

  it('ends its turn with its only status that ends turns', async () => {
    const outputs = await collect(run(turn(), never));
    const ends = outputs.map((output) =>
      output.$case === 'statusUpdate'
        ? endsTurn(output.value.status?.state ?? TaskState.TASK_STATE_UNSPECIFIED)
        : output.$case === 'message',
    );
    expect(ends.pop()).toBe(true);
    expect(ends).not.toContain(true);
  });

  it('has the ids of its own task in all output', async () => {
    for await (const { value } of run(turn(), never)) {
      expect(value).toMatchObject({ taskId: 'task-1', contextId: 'context-1' });
    }
  });

  it('begins each artifact anew and then appends to it', async () => {
    const begun = new Set<string>();
    for await (const { $case, value } of run(turn(), never)) {
      if ($case !== 'artifactUpdate') continue;
      const { artifactId } = value.artifact ?? { artifactId: '' };
      expect(value.append).toBe(begun.has(artifactId));
      begun.add(artifactId);
    }
  });

  it('has the same output in another attempt', async () => {
    const first = summary(await collect(run(turn(), never)));
    expect(summary(await collect(run(turn({ attempt: 2 }), never)))).toEqual(first);
  });

  it('does not change its turn', async () => {
    const given = turn();
    // The journal and the records are there to be written.
    const dataOf = ({
      earlierTasks: _,
      journal: _j,
      log: _l,
      secrets: _s,
      outbound: _o,
      console: _c,
      records: _r,
      ...data
    }: Turn) => data;
    const before = structuredClone(dataOf(given));
    await collect(run(given, never));
    expect(dataOf(given)).toEqual(before);
  });

  it('stops at once, at every output', async () => {
    const { length } = await collect(run(turn(), never));
    for (let said = 0; said < length; said++) {
      const stop = new AbortController();
      const outputs = run(turn(), stop.signal)[Symbol.asyncIterator]();
      for (let i = 0; i < said; i++) await outputs.next();
      stop.abort('canceled');
      const rest = await collect({ [Symbol.asyncIterator]: () => outputs });
      expect(rest.length).toBeLessThanOrEqual(1);
    }
  });
});

describe('the runtime table', () => {
  const none = { agentsDir: undefined } as never;
  const table = new RuntimeTable([
    new EchoRuntime(),
    new ExecutorRuntime(none, Logger.silent(), none, none, none, none),
    indexOf(new FixedAgents([])),
    new LlmRuntime(none, none, none, none, none, none),
    new RemoteA2aRuntime(connector, Logger.silent(), new Metrics()),
  ]);

  it('has the runtime of every built-in agent, which accepts its settings', () => {
    for (const { slug, definition } of BUILTIN_AGENTS) {
      const { name: runtime } = table.get(definition.runtime);
      expect(runtime).toBe(slug);
      expect(() => assertConfig(definition)).not.toThrow();
      expect(() => assertConfig({ runtime, config: { speed: 9 } })).toThrow('config.speed');
    }
  });

  it('lists the runtimes if an agent names another', () => {
    expect(() => table.get('magic')).toThrow(
      'there is no runtime "magic"; there are echo, executor, index, llm, remote-a2a',
    );
  });
});

describe('the executor runtime', () => {
  const none = undefined as never;
  const runtime = (agentsDir?: string) =>
    new ExecutorRuntime({ agentsDir } as never, Logger.silent(), none, none, none, none);
  const run = (turn: Turn, agentsDir?: string) =>
    collect(runtime(agentsDir).run(turn, new AbortController().signal));

  it.each(['/etc/passwd', '../other/index.js', 'a/../../b.js', ''])('takes no module at %j', (module) => {
    expect(() => assertConfig({ runtime: 'executor', config: { module } })).toThrow('config.module');
  });

  it('takes a module inside the folder, and no other setting', () => {
    expect(() => assertConfig({ runtime: 'executor', config: { module: 'dist/index.js' } })).not.toThrow();
    expect(() => assertConfig({ runtime: 'executor', config: { modul: 'x' } })).toThrow('config.modul: ');
  });

  it("runs no code for a tenant's own agent, and none without a folder of agents", async () => {
    const own = { ...agent('countdown'), origin: 'catalog' as const };
    await expect(run(firstTurn('hi', { agent: own }), '/agents')).rejects.toThrow('not an installed agent');
    await expect(run(firstTurn('hi'))).rejects.toThrow('BATON_AGENTS_DIR is not set');
  });
});
