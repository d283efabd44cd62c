import { ArtifactFold, type Message, type Part, type Task, TaskState } from '@baton/a2a';
import { type AgentOutput, jsonPart, type Turn } from '../../agent-runtime.js';
import { MemoryJournal, textOf, userMessage } from '../../../../../test/support/agents/turns.js';
import { LlmBench, toolOf } from './llm-runtime.fixture.js';
import { UndecidedCall } from './tools/undecided-call.js';
import type { AgentTool } from './tools/tool-sources.js';

let bench: LlmBench;
beforeAll(async () => {
  bench = await LlmBench.start();
});
afterEach(() => bench.reset());
afterAll(() => bench.stop());

const weather = { name: 'weather', input: { city: 'Bern' } };

/** A worker that dies after so many outputs: what it has said of them is in the log, the rest of it is lost. */
async function dyingAfter(turn: Turn, outputs: number, logged = outputs): Promise<AgentOutput[]> {
  const dead = new AbortController();
  const said: AgentOutput[] = [];
  const run = bench.runtime.run(turn, dead.signal)[Symbol.asyncIterator]();
  while (said.length < outputs) {
    const { done, value } = await run.next();
    if (done) break;
    said.push(value);
  }
  dead.abort('lease-lost');
  await run.return(undefined).catch(() => undefined);
  return said.slice(0, logged);
}

/** The task as the next attempt finds it. */
function after(turn: Turn, said: readonly AgentOutput[]): Turn {
  return { ...turn, attempt: 2, task: { ...turn.task, artifacts: folded(turn, said) } };
}

function folded({ task }: Turn, said: readonly AgentOutput[]): Task['artifacts'] {
  const fold = new ArtifactFold(task.artifacts);
  for (const output of said) if (output.$case === 'artifactUpdate') fold.apply(output);
  return fold.artifacts();
}

const texts = (artifacts: Task['artifacts']) =>
  Object.fromEntries(artifacts.map(({ artifactId, parts }) => [artifactId, textOf(parts)]));

const endOf = (said: readonly AgentOutput[]) => {
  const last = said.at(-1);
  return last?.$case === 'statusUpdate' ? last.value.status?.state : undefined;
};

describe('an attempt after one that died', () => {
  it('makes no call again that had ended, wherever the worker died, and loses no word', async () => {
    let calls = 0;
    bench.tools.push(toolOf('weather', () => `sun ${++calls}`));
    const script = [
      { text: ['I look ', 'it up. '], calls: [weather] },
      { calls: [weather, { ...weather, id: 'second' }] },
      { text: ['It is ', 'sunny.'] },
    ];
    bench.provider.reply(...script);
    const whole = await bench.run(bench.turn({}, { journal: new MemoryJournal() }));
    const expected = texts(folded(bench.turn(), whole));
    expect(Object.keys(expected)).toEqual(['reply-1', 'call-1-1', 'call-2-1', 'call-2-2', 'reply-3']);
    for (let died = 0; died <= whole.length; died++) {
      // The last words of a worker that dies are lost, now none of them, now two.
      const logged = Math.max(0, died - (died % 3));
      bench.provider.reset();
      calls = 0;
      const journal = new MemoryJournal();
      const turn = bench.turn({}, { journal });
      bench.provider.answer(() => script[steps(journal)]!);
      const said = await dyingAfter(turn, died, logged);
      const finished = steps(journal);
      const begun = bench.provider.requests.length;
      const second = after(turn, said);
      const rest = await bench.run(second);
      expect(texts(folded(second, rest))).toEqual(expected);
      expect(endOf(rest)).toBe(TaskState.TASK_STATE_COMPLETED);
      // Only the call that was in flight is made once more.
      expect(bench.provider.requests.length - begun).toBe(3 - finished);
      expect(journal.entries.filter(({ value }) => kindOf(value) === 'result')).toHaveLength(3);
    }
  });

  it('makes the call of a tool again whose outcome is not known, unless it must not be repeated', async () => {
    for (const repeat of ['again', 'never'] as const) {
      bench.reset();
      let calls = 0;
      let dying: (() => void) | undefined;
      const inFlight = new Promise<void>((resolve) => (dying = resolve));
      const wait = new Promise<never>(() => undefined);
      bench.tools.push(
        toolOf('weather', () => 'sun', {
          repeat,
          execute: async () => {
            calls += 1;
            dying?.();
            return calls === 1 ? wait : { ok: true, content: 'sun' };
          },
        }),
      );
      bench.provider.reply({ calls: [weather] }, { text: 'ok' });
      const turn = bench.turn({}, { journal: new MemoryJournal() });
      const dead = new AbortController();
      const run = bench.run(turn, dead.signal).catch(() => undefined);
      await inFlight;
      dead.abort('lease-lost');
      void run;
      const rest = await bench.run(after(turn, []));
      expect(calls).toBe(repeat === 'again' ? 2 : 1);
      const second = JSON.stringify((await bench.provider.request(2)).body);
      if (repeat === 'never') expect(second).toContain('is not known: the server stopped');
      else expect(second).toContain('sun');
      expect(endOf(rest)).toBe(TaskState.TASK_STATE_COMPLETED);
    }
  });

  describe('and a call whose outcome is not known', () => {
    const PAY = { name: 'pay', input: { city: 'Bern' } };
    const keys: string[] = [];
    let journal: MemoryJournal;

    /** The worker dies in the first call of the tool, and the next attempt asks. */
    async function died(fields: Partial<AgentTool> = {}): Promise<Message[]> {
      keys.length = 0;
      const execute: AgentTool['execute'] = async (_input, { key }) => {
        keys.push(key);
        if (keys.length === 1) throw new Error('this worker has died');
        return Promise.resolve({ ok: true, content: 'paid' });
      };
      bench.tools.push(toolOf('pay', () => '', { repeat: 'ask', execute, ...fields }));
      bench.provider.reply({ calls: [PAY] }, { text: 'It is paid.' });
      journal = new MemoryJournal();
      const turn = bench.turn({}, { journal });
      await expect(bench.run(turn)).rejects.toThrow('this worker has died');
      return asked(await bench.run(after(turn, [])), [turn.message]);
    }

    /** The history of the task with the question, which has just been asked. */
    function asked(said: readonly AgentOutput[], history: Message[]): Message[] {
      expect(endOf(said)).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
      const last = said.at(-1);
      const question = last?.$case === 'statusUpdate' ? last.value.status?.message : undefined;
      expect(question?.parts[0]?.content?.value).toContain('its outcome is not known');
      const approval = { callId: 'call-1-1', unknownOutcome: true };
      expect(question?.parts[1]?.content?.value).toMatchObject({ approval });
      return [...history, question!];
    }

    /** The next turn, with an answer. */
    function answer(history: Message[], parts: string | Part[]): { turn: Turn; history: Message[] } {
      const number = history.length;
      const message = userMessage(parts, { messageId: `m-${number}` });
      const entries = journal.entries.map((entry) => ({ ...entry, runId: `before-${number}` }));
      journal = Object.assign(new MemoryJournal(`run-m-${number}`), { entries });
      const said = [...history, message];
      const turn = bench.turn({}, { journal, runId: `run-m-${number}`, message });
      return { turn: { ...turn, task: { ...turn.task, history: said } }, history: said };
    }

    it('makes it again with the same key once a person has said so', async () => {
      const { turn } = answer(await died(), 'yes');
      expect(endOf(await bench.run(turn))).toBe(TaskState.TASK_STATE_COMPLETED);
      expect(keys).toHaveLength(2);
      expect(keys[0]).toBe(keys[1]);
      expect(JSON.stringify((await bench.provider.request(2)).body)).toContain('paid');
    });

    it('never makes it again if a person refuses: the model reads the reason', async () => {
      const { turn } = answer(await died(), 'no, I see the payment');
      expect(endOf(await bench.run(turn))).toBe(TaskState.TASK_STATE_COMPLETED);
      expect(keys).toHaveLength(1);
      const read = JSON.stringify((await bench.provider.request(2)).body);
      expect(read).toMatch(/not known: the server stopped.*not made again: no, I see the payment/);
    });

    it('asks again about another input, which would be another call', async () => {
      const changed = { callId: 'call-1-1', approved: true, input: { city: 'Rome' } };
      const { turn } = answer(await died(), [jsonPart({ approval: changed })]);
      const said = await bench.run(turn);
      expect(endOf(said)).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
      expect(JSON.stringify(said)).toContain('repeated only with the same input');
      expect(keys).toHaveLength(1);
    });

    it('asks about it after its approval, and again if the repeated call dies too', async () => {
      let deaths = 0;
      const execute: AgentTool['execute'] = async (_input, { key }) => {
        keys.push(key);
        if (++deaths < 3) throw new Error('this worker has died');
        return Promise.resolve({ ok: true, content: 'paid' });
      };
      keys.length = 0;
      bench.tools.push(toolOf('pay', () => '', { repeat: 'ask', needsApproval: true, execute }));
      bench.provider.reply({ calls: [PAY] }, { text: 'It is paid.' });
      journal = new MemoryJournal();
      const first = bench.turn({}, { journal });
      const last = (await bench.run(first)).at(-1);
      const question = last?.$case === 'statusUpdate' ? last.value.status?.message : undefined;
      let history = [first.message, question!];
      for (let death = 1; death < 3; death++) {
        const { turn, history: said } = answer(history, 'yes');
        await expect(bench.run(turn)).rejects.toThrow('this worker has died');
        history = asked(await bench.run(after(turn, [])), said);
      }
      expect(endOf(await bench.run(answer(history, 'yes').turn))).toBe(TaskState.TASK_STATE_COMPLETED);
      expect(keys).toHaveLength(3);
      expect(new Set(keys).size).toBe(1);
    });

    it('asks as well when the connection of the call has broken in this attempt', async () => {
      const execute = () => Promise.reject(new UndecidedCall('the connection broke'));
      bench.tools.push(toolOf('pay', () => '', { repeat: 'ask', execute }));
      bench.provider.reply({ calls: [PAY] });
      journal = new MemoryJournal();
      asked(await bench.run(bench.turn({}, { journal })), []);
    });
  });

  it('replaces what the dead one had streamed of an answer', async () => {
    bench.provider.reply({ text: ['one ', 'two'], fault: { kind: 'stall', after: 4 } }, { text: ['three'] });
    const turn = bench.turn({}, { journal: new MemoryJournal() });
    const said = await dyingAfter(turn, 1);
    expect(texts(folded(turn, said))).not.toEqual({});
    const second = after(turn, said);
    expect(texts(folded(second, await bench.run(second)))).toEqual({ 'reply-1': 'three' });
  });
});

describe('a turn that is stopped', () => {
  it('closes the connection to its provider at once and has no more output', async () => {
    bench.provider.reply({ text: ['one ', 'two'], fault: { kind: 'stall', after: 3 } });
    const stop = new AbortController();
    const run = bench.runtime.run(bench.turn(), stop.signal)[Symbol.asyncIterator]();
    await run.next();
    const next = run.next();
    stop.abort('canceled');
    const { answered } = await bench.provider.request(1);
    expect(await answered).toBe(false);
    expect((await next).done).toBe(true);
    expect(await run.next()).toEqual({ done: true, value: undefined });
  });

  it('does not wait for the pause before a retry', async () => {
    bench.provider.reply({ status: 429, headers: { 'retry-after': '50' } });
    const stop = new AbortController();
    const run = bench.run(bench.turn(), stop.signal);
    await (
      await bench.provider.request(1)
    ).answered;
    setImmediate(() => stop.abort('canceled'));
    expect(await run).toEqual([]);
  });

  it('notes what the broken call has cost, by estimate', async () => {
    bench.provider.reply({ text: ['one two three', 'four'], fault: { kind: 'stall', after: 3 } });
    await dyingAfter(bench.turn(), 1);
    expect(bench.tokens.spent).toMatchObject([{ estimated: true }]);
    expect(bench.tokens.spent[0]?.inputTokens).toBeGreaterThan(0);
    expect(bench.tokens.spent[0]?.outputTokens).toBeGreaterThan(0);
  });
});

const kindOf = (value: unknown): string => (value as { kind: string }).kind;
const steps = ({ entries }: MemoryJournal): number =>
  entries.filter(({ value }) => kindOf(value) === 'step').length;
