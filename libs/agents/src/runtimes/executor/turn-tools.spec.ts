import { type Message, Role, TaskState } from '@baton/a2a';
import { AgentEvent, type ExecutionEventBus, type RequestContext } from '@a2a-js/sdk/server';
import { ComputePool } from '@baton/compute';
import { Logger, Metrics } from '@baton/telemetry';
import { converseHere } from '../../../../../test/support/agents/executors.js';
import {
  firstTurn,
  MemoryJournal,
  summary,
  turnWith,
  userMessage,
} from '../../../../../test/support/agents/turns.js';
import type { AgentOutput, Turn } from '../../agent-runtime.js';
import { SENT_BY_AGENT } from '../../approvals.js';
import { stepsOf } from '../../author/steps-of.js';
import { toolOf } from '../llm/llm-runtime.fixture.js';
import { type AgentTool, ToolSources } from '../llm/tools/tool-sources.js';
import type { DurableSteps } from './child/steps.js';
import { TurnTools } from './turn-tools.js';

const { TASK_STATE_COMPLETED, TASK_STATE_INPUT_REQUIRED } = TaskState;
const { ROLE_USER, ROLE_AGENT } = Role;

type Code = (steps: DurableSteps) => Promise<unknown>;

const SETTINGS = { mcp: [{ name: 'desk', url: 'https://desk.example.com/mcp' }] };
const pool = new ComputePool({ threads: 2, timeoutMs: 30_000 });
afterAll(() => pool.close());

/** A task of an agent in code whose attempts share a journal, and what its tools have done. */
class Bench {
  readonly journal = new MemoryJournal();
  readonly made: { input: unknown; key: string }[] = [];
  outputs: AgentOutput[] = [];
  closed = 0;
  private attempt = 0;

  constructor(private readonly fields: Partial<AgentTool> = {}) {}

  /** @param history the messages of the task; the last one is that of the turn */
  async run(code: Code, { crashAfter = Infinity, history = [userMessage('hi')] } = {}): Promise<unknown> {
    this.outputs = [];
    let left = crashAfter;
    const { journal } = this;
    const write = (stored: () => Promise<void>): Promise<void> =>
      left-- > 0 ? stored() : Promise.reject(new Error('the worker has died'));
    const turn: Turn = {
      ...(history.length === 1 ? firstTurn(history[0]!) : turnWith(history)),
      attempt: ++this.attempt,
      journal: {
        read: () => journal.read(),
        append: (value: unknown) => write(() => journal.append(value)),
        noteRemoteCall: () => Promise.resolve(),
        noteCompensable: () => Promise.resolve(),
        restart: (value: unknown) => write(() => journal.restart(value)),
      },
    };
    const execute = async (context: RequestContext, bus: ExecutionEventBus): Promise<void> => {
      const message = userMessage(JSON.stringify(await code(stepsOf(context))));
      const status = { state: TASK_STATE_COMPLETED, message, timestamp: undefined };
      bus.publish(AgentEvent.statusUpdate({ taskId: 'task-1', contextId: 'c', metadata: undefined, status }));
    };
    const pay: AgentTool = {
      ...toolOf('pay', () => undefined, this.fields),
      execute: (input, { key }) => {
        this.made.push({ input, key });
        return Promise.resolve({ ok: true, content: { paid: input } });
      },
    };
    const close = (): Promise<void> => Promise.resolve(void (this.closed += 1));
    const sources = new ToolSources([{ open: () => Promise.resolve({ tools: [pay], close }) }]);
    const tools = new TurnTools(sources, pool, new Metrics());
    const ports = { tools, limits: { depth: 1, tasks: 1 } } as never;
    const executor = { execute, cancelTask: () => Promise.resolve() };
    const { signal } = new AbortController();
    for await (const output of converseHere(executor, turn, signal, Logger.silent(), ports))
      this.outputs.push(output);
    const { state, text } = summary(this.outputs).at(-1) as { state: TaskState; text: string };
    return state === TASK_STATE_COMPLETED ? JSON.parse(text) : text;
  }

  /** The data part of the question with which a turn has ended. */
  get question(): Record<string, unknown> {
    const end = this.outputs.at(-1)!;
    const parts = end.$case === 'statusUpdate' ? (end.value.status?.message?.parts ?? []) : [];
    const data = parts.find(({ content }) => content?.$case === 'data')?.content?.value;
    return (data as { approval: Record<string, unknown> }).approval;
  }
}

const code: Code = async ({ tools }) => {
  const { list, call } = await tools(SETTINGS);
  return [list.map(({ name }) => name), await call('pay', { city: 'Bonn' })];
};
const PAID = [['pay'], { ok: true, content: { paid: { city: 'Bonn' } } }];
const answer = (text: string, fields: Partial<Message> = {}): Message[] => [
  userMessage('hi'),
  { ...userMessage('may I?'), messageId: 'q', role: ROLE_AGENT },
  { ...userMessage(text), messageId: 'm-2', role: ROLE_USER, ...fields },
];

describe('tools of MCP servers in code', () => {
  // The list: it begins, it ends. A call: it begins, the tool has answered, the step has ended.
  it.each([0, 1, 2, 3, 4])(
    'are not called again once they have answered (crash after %i entries)',
    async (crashAfter) => {
      const bench = new Bench();
      await expect(bench.run(code, { crashAfter })).rejects.toThrow('died');
      expect(await bench.run(code)).toEqual(PAID);
      expect(bench.made).toHaveLength(crashAfter === 3 ? 2 : 1);
      expect(new Set(bench.made.map(({ key }) => key)).size).toBe(1);
      expect(bench.closed).toBeGreaterThan(0);
    },
  );

  it('have an error for the input, the name and the settings', async () => {
    const bench = new Bench();
    const wrong: Code = async ({ tools }) => {
      const { call } = await tools(SETTINGS);
      const messageOf = (error: unknown): string => (error as Error).message;
      return [
        await call('pay', { city: 1 }),
        await call('sell', {}).catch(messageOf),
        await tools({ mcp: [{ name: 'desk' }] }).catch(messageOf),
      ];
    };
    expect(await bench.run(wrong)).toEqual([
      { ok: false, content: expect.stringContaining('The input of "pay" is not valid') as string },
      expect.stringContaining('There is no tool "sell". The tools are: pay.'),
      expect.stringContaining('config.tools.mcp'),
    ]);
    expect(bench.made).toHaveLength(0);
  });

  it('ask for the approval of a person, and refuse that of an agent', async () => {
    const bench = new Bench({ needsApproval: true });
    await bench.run(code);
    expect(summary(bench.outputs).at(-1)).toMatchObject({ state: TASK_STATE_INPUT_REQUIRED });
    expect(bench.question).toMatchObject({ callId: 'step-1-2', tool: 'pay', input: { city: 'Bonn' } });
    const agents = answer('yes', { metadata: SENT_BY_AGENT });
    expect(await bench.run(code, { history: agents })).toContain('Only a person can answer this');
    expect(bench.made).toHaveLength(0);
    expect(await bench.run(code, { history: answer('yes') })).toEqual(PAID);
    expect(bench.made).toHaveLength(1);
  });

  it('are not called if a person refuses, and get the input to which a person has changed the call', async () => {
    const refusing = new Bench({ needsApproval: true });
    await refusing.run(code);
    const [, refused] = (await refusing.run(code, { history: answer('no, too dear') })) as unknown[];
    expect(refused).toMatchObject({ ok: false, content: expect.stringContaining('too dear') as string });
    expect(refusing.made).toHaveLength(0);
    const changing = new Bench({ needsApproval: true });
    await changing.run(code);
    const approval = { approved: true, input: { city: 'Ulm' } };
    const content = { $case: 'data' as const, value: { approval } };
    const parts = [{ content, metadata: undefined, filename: '', mediaType: '' }];
    await changing.run(code, { history: answer('', { parts }) });
    expect(changing.made.map(({ input }) => input)).toEqual([{ city: 'Ulm' }]);
  });

  it('that must not be repeated are sent once: the outcome is unknown, and a person may decide', async () => {
    // The fourth entry says that the call is sent.
    const asking = new Bench({ repeat: 'ask' });
    await expect(asking.run(code, { crashAfter: 4 })).rejects.toThrow('died');
    await asking.run(code);
    expect(asking.question).toMatchObject({ tool: 'pay', unknownOutcome: true });
    expect(asking.made).toHaveLength(1);
    expect(await asking.run(code, { history: answer('yes') })).toEqual(PAID);
    expect(asking.made).toHaveLength(2);
    const never = new Bench({ repeat: 'never' });
    await expect(never.run(code, { crashAfter: 4 })).rejects.toThrow('died');
    const [, unknown] = (await never.run(code)) as unknown[];
    expect(unknown).toMatchObject({ ok: false, content: expect.stringContaining('is not known') as string });
    expect(never.made).toHaveLength(1);
  });
});
