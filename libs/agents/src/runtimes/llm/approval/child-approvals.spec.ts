import { TaskState } from '@baton/a2a';
import { type ApprovalAnswer, SENT_BY_AGENT } from '../../../approvals.js';
import { jsonPart } from '../../../agent-runtime.js';
import { Suspension } from '../../../suspension.js';
import { LlmBench, toolOf } from '../llm-runtime.fixture.js';
import type { AgentTool } from '../tools/tool-sources.js';
import { ApprovalsPending } from './approvals-pending.js';
import { Dialogue, endOf } from './dialogue.fixture.js';

const { TASK_STATE_COMPLETED: COMPLETED, TASK_STATE_INPUT_REQUIRED: ASKS } = TaskState;

let bench: LlmBench;
/** What the tool of this agent that needs approval was called with. */
let written: unknown[];

beforeAll(async () => {
  bench = await LlmBench.start();
});
beforeEach(() => {
  written = [];
  const write = (input: unknown) => `note ${written.push(input)}`;
  bench.tools.push(toolOf('write', write, { needsApproval: true }));
});
afterEach(() => bench.reset());
afterAll(() => bench.stop());

const bern = { name: 'write', input: { city: 'Bern' } };
const approval = (...answers: object[]) => answers.map((answer) => jsonPart({ approval: answer }));
const modelRead = async (request: number) => JSON.stringify((await bench.provider.request(request)).body);

describe('a call that waits for another task, which asks for approval', () => {
  const ask = { name: 'ask', input: { city: 'Bern' } };
  const asked = (callId: string) => ({
    callId,
    tool: 'pay',
    description: 'Pays',
    input: {},
    agents: ['helper', 'teller'],
  });
  /** The answers to the children, by the position of the call; a child asks until it has got its answer. */
  let answers: Record<string, (ApprovalAnswer | undefined)[]>;
  /** Children that ask once more, although they have got their answer. */
  const insatiable = new Set<string>();
  const working = new Set<string>();

  beforeEach(() => {
    answers = {};
    insatiable.clear();
    const execute: AgentTool['execute'] = async (_input, { id, answer }) => {
      (answers[id] ??= []).push(answer);
      if (working.has(id)) throw new Suspension([id]);
      if (!answer || insatiable.has(id)) throw new ApprovalsPending([asked(`${id}/call-1-1`)]);
      return { ok: true, content: `paid for ${id}` };
    };
    bench.tools.push(toolOf('ask', () => '', { execute }));
  });

  it('is asked by this task in turn with the asking agent, and the model reads nothing of it', async () => {
    bench.provider.reply({ calls: [ask] }, { text: 'Done.' });
    const dialogue = new Dialogue(bench);
    expect(await dialogue.say('pay it')).toEqual({
      state: ASKS,
      text: 'This call needs your approval:\nteller (asked by helper): pay {}\nAnswer yes or no.',
      data: [{ approval: asked('call-1-1/call-1-1') }],
    });
    expect(await dialogue.say('yes')).toMatchObject({ state: COMPLETED });
    const decisions = [{ callId: 'call-1-1', approved: true }];
    expect(answers['call-1-1']).toEqual([undefined, { number: expect.any(Number), decisions }]);
    expect(bench.provider.requests).toHaveLength(2);
    expect(await modelRead(2)).not.toMatch(/approv/i);
  });

  it('is asked together with those of others, and each gets its own answer', async () => {
    bench.provider.reply({ calls: [ask, bern, ask] }, { text: 'Done.' });
    const dialogue = new Dialogue(bench);
    const { data, text } = await dialogue.say('pay it');
    expect(data.map((part) => (part as { approval: { callId: string } }).approval.callId)).toEqual([
      'call-1-2',
      'call-1-1/call-1-1',
      'call-1-3/call-1-1',
    ]);
    expect(text).toContain('Answer "yes to all" or "no to all", or about each with a data part.');
    expect(await dialogue.say('yes')).toMatchObject({
      state: ASKS,
      data,
      text: expect.stringContaining('Several agents ask') as string,
    });
    expect(written).toEqual([]);
    await dialogue.say(approval({ callId: 'call-1-3/call-1-1', approved: false, reason: 'too dear' }));
    expect(answers['call-1-1']).toEqual([undefined, undefined, undefined]);
    const refusal = { callId: 'call-1-1', approved: false, reason: 'too dear' };
    expect(answers['call-1-3']!.at(-1)).toMatchObject({ decisions: [refusal] });
    expect(await dialogue.say('yes to all')).toMatchObject({ state: COMPLETED });
    expect(answers['call-1-1']!.at(-1)).toMatchObject({
      decisions: [{ callId: 'call-1-1', approved: true }],
    });
    expect(written).toEqual([{ city: 'Bern' }]);
  });

  it('is asked again where the other task asks again, also under the same id', async () => {
    bench.provider.reply({ calls: [ask] }, { text: 'Done.' });
    insatiable.add('call-1-1');
    const dialogue = new Dialogue(bench);
    const first = await dialogue.say('pay it');
    expect(await dialogue.say('yes')).toEqual(first);
    insatiable.clear();
    expect(await dialogue.say('no')).toMatchObject({ state: COMPLETED });
    const [, yes, no] = answers['call-1-1']!;
    expect(yes).toMatchObject({ decisions: [{ approved: true }] });
    expect(no).toMatchObject({ decisions: [{ approved: false }] });
    expect(no!.number).not.toBe(yes!.number);
  });

  it('hands the same answer on in every attempt, while the other task is at work on it', async () => {
    bench.provider.reply({ calls: [ask] }, { text: 'Done.' });
    const dialogue = new Dialogue(bench);
    await dialogue.say('pay it');
    const turn = dialogue.turn('yes');
    working.add('call-1-1');
    await expect(bench.run(turn)).rejects.toThrow(Suspension);
    working.clear();
    expect(endOf(await bench.run({ ...turn, attempt: 2 }))).toMatchObject({ state: COMPLETED });
    const [, first, second] = answers['call-1-1']!;
    expect(first).toBeDefined();
    expect(second).toEqual(first);
  });

  it.each(['ask', 'write'])('takes no answer from an agent (%s)', async (name) => {
    bench.provider.reply({ calls: [{ ...ask, name }] }, { text: 'Done.' });
    const dialogue = new Dialogue(bench);
    const { data } = await dialogue.say('pay it');
    for (const parts of ['yes', approval({ approved: true })] as const) {
      const turn = dialogue.turn(parts);
      const message = { ...turn.message, metadata: SENT_BY_AGENT };
      expect(endOf(await bench.run({ ...turn, message }))).toMatchObject({
        state: ASKS,
        data,
        text: expect.stringContaining('Only a person can answer this') as string,
      });
    }
    expect(written).toEqual([]);
    expect(Object.values(answers).flat().filter(Boolean)).toEqual([]);
    expect(await dialogue.say('yes')).toMatchObject({ state: COMPLETED });
  });
});
