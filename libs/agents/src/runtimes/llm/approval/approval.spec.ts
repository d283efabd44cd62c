import { TaskState } from '@baton/a2a';
import { jsonPart } from '../../../agent-runtime.js';
import { LlmBench, summaryOf, toolOf } from '../llm-runtime.fixture.js';
import { Dialogue, endOf } from './dialogue.fixture.js';

const { TASK_STATE_COMPLETED: COMPLETED, TASK_STATE_INPUT_REQUIRED: ASKS } = TaskState;

let bench: LlmBench;
/** What the tool that needs approval was called with. */
let written: unknown[];

beforeAll(async () => {
  bench = await LlmBench.start();
});
beforeEach(() => {
  written = [];
  const write = (input: unknown) => `note ${written.push(input)}`;
  bench.tools.push(
    toolOf('look', () => 'all quiet'),
    toolOf('write', write, { needsApproval: true }),
  );
});
afterEach(() => bench.reset());
afterAll(() => bench.stop());

const bern = { name: 'write', input: { city: 'Bern' } };
const rome = { name: 'write', input: { city: 'Rome' } };
const approval = (...answers: object[]) => answers.map((answer) => jsonPart({ approval: answer }));

const modelRead = async (request: number) => JSON.stringify((await bench.provider.request(request)).body);

describe('a call that needs an approval', () => {
  it('is described to people and programs, and not made; other calls are', async () => {
    bench.provider.reply({ calls: [{ name: 'look', input: { city: 'Bern' } }, bern] });
    const turn = new Dialogue(bench).turn('write it down');
    const outputs = await bench.run(turn);
    expect(Object.values(summaryOf(outputs).artifacts)).toMatchObject([{ kind: 'tool-call' }]);
    expect(endOf(outputs)).toEqual({
      state: ASKS,
      text: 'This call needs your approval:\nwrite {\n  "city": "Bern"\n}\nAnswer yes or no.',
      data: [
        {
          approval: { callId: 'call-1-2', tool: 'write', description: 'The write', input: { city: 'Bern' } },
        },
      ],
    });
    expect(written).toEqual([]);
  });

  it.each([
    ['as data', approval({ callId: 'call-1-1', approved: true }, { callId: 'call-1-2', approved: true })],
    ['as data about all', approval({ approved: true })],
    ['in words', 'yes to all'],
  ])('is not made because a message before the question approves it, %s', async (_, parts) => {
    bench.provider.reply({ calls: [bern] });
    const dialogue = new Dialogue(bench);
    expect((await dialogue.say(parts)).state).toBe(ASKS);
    expect(written).toEqual([]);
    // An answer to the first call approves no later one.
    bench.provider.reply({ calls: [rome] });
    const both = approval({ callId: 'call-1-1', approved: true }, { callId: 'call-2-1', approved: true });
    await dialogue.say(both);
    expect(written).toEqual([]);
    expect((await dialogue.say(approval({ callId: 'call-1-1', approved: true }))).state).toBe(ASKS);
    expect(written).toEqual([bern.input]);
  });

  it('is shown as it will be made, whatever the order in which its characters would be shown', async () => {
    const city = 'Bern\u202e"moR" :"ytic"\u2066\u2028';
    bench.provider.reply({ calls: [{ name: 'write', input: { city } }] });
    const { text, data } = (await new Dialogue(bench).say('write it down')) as {
      text: string;
      data: unknown;
    };
    expect(text).toContain(String.raw`"city": "Bern\u202e\"moR\" :\"ytic\"\u2066\u2028"`);
    expect(data).toMatchObject([{ approval: { input: { city } } }]);
  });

  it.each([
    ['in words', 'yes'],
    ['as data', approval({ callId: 'call-1-1', approved: true })],
  ] as const)('is made once it is approved %s, and the model reads its result', async (_how, answer) => {
    bench.provider.reply({ calls: [bern] }, { text: 'Done.' });
    const dialogue = new Dialogue(bench);
    await dialogue.say('write it down');
    expect(await dialogue.say(answer as string)).toMatchObject({ state: COMPLETED });
    expect(written).toEqual([{ city: 'Bern' }]);
    const read = await modelRead(2);
    expect(read).toContain('note 1');
    expect(read).not.toContain('yes');
  });

  it('is not made once it is refused, and the model reads why', async () => {
    bench.provider.reply({ calls: [bern] }, { text: 'As you wish.' });
    const dialogue = new Dialogue(bench);
    await dialogue.say('write it down');
    expect(await dialogue.say('No, it is secret')).toMatchObject({ state: COMPLETED });
    expect(written).toEqual([]);
    expect(await modelRead(2)).toContain('The user has refused this call: No, it is secret.');
  });

  it('is asked about again when the answer is neither yes nor no', async () => {
    bench.provider.reply({ calls: [bern] }, { text: 'Done.' });
    const dialogue = new Dialogue(bench);
    const asked = await dialogue.say('write it down');
    const again = await dialogue.say('what for?');
    expect(again).toEqual({ ...asked, text: `That is neither yes nor no.\n${asked.text}` });
    expect(written).toEqual([]);
    await dialogue.say('go ahead');
    expect(written).toHaveLength(1);
    expect(bench.provider.requests).toHaveLength(2);
  });

  it('may be one of several: all are described, and answered together or one by one', async () => {
    for (const answers of [
      [
        approval(
          { callId: 'call-1-1', approved: true },
          { callId: 'call-1-2', approved: false, reason: 'no' },
        ),
      ],
      [approval({ callId: 'call-1-2', approved: false, reason: 'no' }), approval({ approved: true })],
    ]) {
      bench.provider.reply({ calls: [bern, rome] }, { text: 'Done.' });
      written = [];
      const dialogue = new Dialogue(bench);
      const { data } = await dialogue.say('write it down');
      expect(data).toMatchObject([
        { approval: { callId: 'call-1-1' } },
        { approval: { callId: 'call-1-2' } },
      ]);
      for (const answer of answers.slice(0, -1)) {
        const rest = await dialogue.say(answer);
        expect(rest).toMatchObject({ state: ASKS, data: [{ approval: { callId: 'call-1-1' } }] });
      }
      expect(await dialogue.say(answers.at(-1)!)).toMatchObject({ state: COMPLETED });
      expect(written).toEqual([{ city: 'Bern' }]);
    }
  });

  it('is not approved by an old answer that comes again', async () => {
    bench.provider.reply({ calls: [bern] }, { calls: [rome] }, { text: 'Done.' });
    const dialogue = new Dialogue(bench);
    await dialogue.say('write it down');
    const first = approval({ callId: 'call-1-1', approved: true });
    expect(await dialogue.say(first)).toMatchObject({
      state: ASKS,
      data: [{ approval: { callId: 'call-2-1' } }],
    });
    expect(await dialogue.say(first)).toMatchObject({
      state: ASKS,
      data: [{ approval: { callId: 'call-2-1' } }],
    });
    expect(written).toEqual([{ city: 'Bern' }]);
    await dialogue.say('ok');
    expect(written).toEqual([{ city: 'Bern' }, { city: 'Rome' }]);
  });

  it('is not asked about when its input is not valid', async () => {
    bench.provider.reply({ calls: [{ name: 'write', input: { town: 'Bern' } }] }, { text: 'Sorry.' });
    expect(await new Dialogue(bench).say('write it down')).toMatchObject({ state: COMPLETED });
    expect(await modelRead(2)).toContain('is not valid');
  });
});

describe('an approval that changes the input', () => {
  it('makes the call with that input, shows it, and reports it to the model', async () => {
    bench.provider.reply({ calls: [bern] }, { text: 'Done.' });
    const dialogue = new Dialogue(bench);
    await dialogue.say('write it down');
    const answer = approval({ callId: 'call-1-1', approved: true, input: rome.input });
    const outputs = await bench.run(dialogue.turn(answer));
    expect(written).toEqual([{ city: 'Rome' }]);
    const artifact = outputs.filter(({ $case }) => $case === 'artifactUpdate')[1];
    expect(artifact?.value).toMatchObject({
      artifact: {
        parts: [{ content: { value: { tool: 'write', ok: true, input: { city: 'Rome' } } } }],
        metadata: { 'baton.approval': { approved: true, inputChanged: true } },
      },
    });
    const read = await modelRead(2);
    expect(read).toContain('A person has changed the input of this call');
    expect(read).toContain('Bern');
    expect(read).toContain('Rome');
  });

  it.each([
    [
      'does not fit the schema of the tool',
      { input: { town: 'Rome' } },
      'The changed input of "call-1-1" is not valid',
    ],
    ['refuses the call', { approved: false, input: rome.input }, 'A data part must be'],
    ['has an unknown member', { arguments: rome.input }, 'A data part must be'],
  ])('is asked about again where it %s', async (_, members, problem) => {
    bench.provider.reply({ calls: [bern] }, { text: 'Done.' });
    const dialogue = new Dialogue(bench);
    await dialogue.say('write it down');
    const asked = await dialogue.say(approval({ callId: 'call-1-1', approved: true, ...members }));
    expect(asked).toMatchObject({ state: ASKS, text: expect.stringContaining(problem) as string });
    expect(written).toEqual([]);
    await dialogue.say('yes');
    expect(written).toEqual([{ city: 'Bern' }]);
  });

  it('names the call where several wait', async () => {
    bench.provider.reply({ calls: [bern, rome] });
    const dialogue = new Dialogue(bench);
    await dialogue.say('write it down');
    const asked = await dialogue.say(approval({ approved: true, input: rome.input }));
    expect(asked.text).toContain('name the callId');
    expect(written).toEqual([]);
  });
});

describe('an answer whose worker dies', () => {
  it('holds: the call is made once, wherever the worker died', async () => {
    for (let outputs = 0; outputs < 5; outputs++) {
      bench.provider.reset();
      written = [];
      bench.provider.reply({ calls: [bern] }, { text: ['It is ', 'done.'] }, { text: 'It is done.' });
      const dialogue = new Dialogue(bench);
      await dialogue.say('write it down');
      const turn = dialogue.turn('yes');
      const first = bench.runtime.run(turn, new AbortController().signal)[Symbol.asyncIterator]();
      for (let said = 0; said < outputs; said++) await first.next();
      await first.return(undefined);
      const second = await bench.run({ ...turn, attempt: 2 });
      expect(endOf(second)).toMatchObject({ state: COMPLETED });
      expect(written).toEqual([{ city: 'Bern' }]);
      expect(await modelRead(2)).not.toContain('yes');
    }
  });

  it('holds with the input that it has changed', async () => {
    bench.provider.reply({ calls: [bern] }, { text: 'It is done.' });
    const dialogue = new Dialogue(bench);
    await dialogue.say('write it down');
    const turn = dialogue.turn(approval({ callId: 'call-1-1', approved: true, input: rome.input }));
    const first = bench.runtime.run(turn, new AbortController().signal)[Symbol.asyncIterator]();
    await first.next();
    await first.return(undefined);
    const outputs = await bench.run({ ...turn, attempt: 2 });
    expect(written).toEqual([{ city: 'Rome' }]);
    expect(JSON.stringify(outputs)).toContain('"input":{"city":"Rome"}');
  });

  it('leaves it unknown what became of a call that must not be repeated', async () => {
    let calls = 0;
    const execute = () => Promise.reject(new Error(`this worker died in call ${++calls}`));
    bench.tools.push(toolOf('pay', () => '', { needsApproval: true, repeat: 'never', execute }));
    bench.provider.reply({ calls: [{ name: 'pay', input: { city: 'Bern' } }] }, { text: 'I do not know.' });
    const dialogue = new Dialogue(bench);
    await dialogue.say('pay');
    const turn = dialogue.turn('yes');
    await expect(bench.run(turn)).rejects.toThrow('this worker died');
    expect(endOf(await bench.run({ ...turn, attempt: 2 }))).toMatchObject({ state: COMPLETED });
    expect(calls).toBe(1);
    expect(await modelRead(2)).toContain('is not known');
  });
});
