import { TaskState } from '@baton/a2a';
import type { ProviderEvent } from '../../../../../test/support/model-provider/reply.js';
import { jsonPart } from '../../agent-runtime.js';
import { MemoryJournal } from '../../../../../test/support/agents/turns.js';
import { Dialogue } from './approval/dialogue.fixture.js';
import { LlmBench, summaryOf, toolOf } from './llm-runtime.fixture.js';
import type { LlmEntry, ModelStep } from './llm-entry.js';

const {
  TASK_STATE_COMPLETED: COMPLETED,
  TASK_STATE_FAILED: FAILED,
  TASK_STATE_INPUT_REQUIRED: ASKS,
} = TaskState;

/** How each provider names the limit of tokens, its filter, and an answer with calls. */
const PROVIDERS = [
  ['openai responses', { model: 'openai/gpt-5-mini' }, 'max_output_tokens', 'content_filter'],
  ['openai chat', { model: 'openai/gpt-4o', api: 'chat' }, 'length', 'content_filter'],
  ['anthropic', { model: 'anthropic/claude-sonnet-4-5' }, 'max_tokens', 'refusal'],
  ['google', { model: 'google/gemini-2.5-flash' }, 'MAX_TOKENS', 'SAFETY'],
  ['openai-compatible', { model: 'openai-compatible/llama3', key: 'mine' }, 'length', 'content_filter'],
] as const;
const CHAT = PROVIDERS.filter(([, { model, ...more }]) => model.includes('compatible') || 'api' in more);

let bench: LlmBench;
/** The inputs with which the tool was called. */
let made: unknown[];
beforeAll(async () => {
  bench = await LlmBench.start();
});
beforeEach(() => {
  made = [];
  offer({ type: 'object', properties: { filter: { type: 'string' }, limit: { type: 'integer' } } });
});
afterEach(() => bench.reset());
afterAll(() => bench.stop());

/** The agent has one tool with this input. */
function offer(inputSchema: Record<string, unknown>, needsApproval = false): void {
  bench.tools.length = 0;
  const remove = (input: unknown) => `removed ${made.push(input)}`;
  bench.tools.push(toolOf('delete_rows', remove, { inputSchema, needsApproval }));
}

const rows = (input: object | string) => ({ name: 'delete_rows', input });
const bodyOf = async (request: number) => JSON.stringify((await bench.provider.request(request)).body);

/** The steps of a run, as the journal has them. */
async function stepsOf(config: Record<string, unknown>): Promise<{ steps: ModelStep[]; status: unknown }> {
  const journal = new MemoryJournal();
  const { status } = summaryOf(await bench.run(bench.turn(config, { journal })));
  const entries = journal.entries.map(({ value }) => value as LlmEntry);
  const steps = entries.filter((entry) => entry.kind === 'step');
  return { steps, status };
}

describe.each(PROVIDERS)('a call of %s', (name, config, limit, filter) => {
  it.each([
    ['cut off in the middle', '{"filter":"id=5', 'Unterminated string'],
    ['with a comma too many', '{"filter":"id=5",}', 'double-quoted property name'],
    ['with a raw newline', '{"filter":"id=5\n"}', 'control character'],
    ['that is two calls', '{"filter":"id=5"}{"filter":"id=6"}', 'after JSON'],
    ['that is a list', '["id=5"]', 'not a JSON object'],
    ['nested too deep', '{"filter":'.repeat(300) + '1' + '}'.repeat(300), 'nested deeper than 200 levels'],
  ])('is not made with arguments %s, and the model reads why', async (_, input, wrong) => {
    bench.provider.reply({ calls: [rows(input)] }, { text: 'I see.' });
    const { artifacts, status } = summaryOf(await bench.say(config));
    expect(status).toEqual({ state: COMPLETED });
    expect(made).toEqual([]);
    expect(Object.keys(artifacts)).toEqual(['reply-2']);
    const read = await bodyOf(2);
    expect(read).toContain('No call of your last answer was made');
    expect(read).toContain('delete_rows');
    expect(read).toContain(wrong);
    expect(read).toContain(JSON.stringify(input.slice(0, 100)).slice(1, -1));
    expect(bench.tokens.spent).toHaveLength(2);
  });

  it('with such arguments fails the turn after one correction', async () => {
    bench.provider.answer(() => ({ calls: [rows('{"filter":"id=5')] }));
    const { status } = summaryOf(await bench.say(config));
    expect(status?.state).toBe(FAILED);
    expect(status?.text).toMatch(
      /^The model called "delete_rows" with arguments that are not usable: they are not valid JSON: Unterminated string.*No call of this answer was made\. Send the message again, choose another model/s,
    );
    expect(bench.provider.requests).toHaveLength(2);
    expect(made).toEqual([]);
  });

  it('with such arguments is not shown to a person', async () => {
    offer({ type: 'object' }, true);
    bench.provider.reply({ calls: [rows('{"filter":"id=5')] }, { calls: [rows({ filter: 'id=5' })] });
    const { state, data } = await new Dialogue(bench, config).say('clean up');
    expect(state).toBe(ASKS);
    expect(data).toMatchObject([{ approval: { callId: 'call-2-1', input: { filter: 'id=5' } } }]);
  });

  it('beside a whole one makes neither', async () => {
    const calls = [rows({ filter: 'id=4' }), { ...rows('{"filter":"id=5'), id: 'b' }];
    bench.provider.reply({ calls }, { calls: [rows({ filter: 'id=4' })] }, { text: 'Done.' });
    expect(summaryOf(await bench.say(config)).status).toEqual({ state: COMPLETED });
    expect(made).toEqual([{ filter: 'id=4' }]);
  });

  // Google has no text of arguments, but an object.
  (name === 'google' ? it.skip : it)('without arguments is one with an empty object', async () => {
    bench.provider.reply({ calls: [rows('')] }, { text: 'Done.' });
    expect(summaryOf(await bench.say(config)).status).toEqual({ state: COMPLETED });
    expect(made).toEqual([{}]);
  });

  it.each([
    ['cut-off', limit, 'The answer was cut off at the limit of its tokens: raise maxOutputTokens'],
    ['filtered', filter, "The provider's filter has stopped the answer"],
    ['strange', 'some_new_reason', 'The answer ended for a reason that Baton does not know'],
  ] as const)('in a %s answer is not made', async (_, reason, text) => {
    bench.provider.answer(() => ({
      text: 'I do it.',
      calls: [rows({ filter: 'id=4' }), { ...rows('{"filter":"id=5'), id: 'b' }],
      reason,
      usage: { input: 7, output: 3 },
    }));
    const { steps, status } = await stepsOf(config);
    expect(status).toMatchObject({ state: FAILED, text: expect.stringContaining(text) as string });
    expect(status).toMatchObject({
      text: expect.stringContaining(
        `The calls of the answer were not made. The provider's reason is "${reason}".`,
      ) as string,
    });
    expect(made).toEqual([]);
    expect(bench.provider.requests).toHaveLength(1);
    expect(steps).toMatchObject([{ rawFinish: reason, notMade: ['delete_rows', 'delete_rows'] }]);
    expect(bench.tokens.spent).toMatchObject([{ inputTokens: 7, outputTokens: 3 }]);
  });

  it('with the id of another one is a call of its own', async () => {
    const [four, five] = [rows({ filter: 'id=4' }), rows({ filter: 'id=5' })].map((call) => ({
      ...call,
      id: 'same',
    }));
    bench.provider.reply({ calls: [four!, five!] }, { calls: [four!] }, { text: 'Done.' });
    expect(summaryOf(await bench.say(config)).status).toEqual({ state: COMPLETED });
    expect(made).toEqual([{ filter: 'id=4' }, { filter: 'id=5' }, { filter: 'id=4' }]);
    const read = await bodyOf(3);
    for (const result of ['removed 1', 'removed 2', 'removed 3']) expect(read.split(result)).toHaveLength(2);
    const { body } = await bench.provider.request(3);
    const ids = idsIn(body);
    if (name === 'google') return;
    expect(ids.calls).toHaveLength(3);
    expect(new Set(ids.calls).size).toBe(3);
    expect(ids.results).toEqual(ids.calls);
  });

  it('with the id of another one can be approved', async () => {
    offer({ type: 'object' }, true);
    const calls = [rows({ filter: 'id=4' }), rows({ filter: 'id=5' })].map((call) => ({ ...call, id: 'x' }));
    bench.provider.reply({ calls }, { text: 'Done.' });
    const dialogue = new Dialogue(bench, config);
    expect((await dialogue.say('clean up')).state).toBe(ASKS);
    const answer = [{ approval: { callId: 'call-1-2', approved: true } }];
    expect((await dialogue.say(answer.map((each) => jsonPart(each)))).state).toBe(ASKS);
    expect(made).toEqual([{ filter: 'id=5' }]);
    expect((await dialogue.say('yes')).state).toBe(COMPLETED);
    expect(made).toEqual([{ filter: 'id=5' }, { filter: 'id=4' }]);
  });
});

/** The ids of calls and results in a request, in order. */
function idsIn(body: unknown): { calls: string[]; results: string[] } {
  const ids = { calls: [] as string[], results: [] as string[] };
  JSON.stringify(body, (_, value: unknown) => {
    const part = (value ?? {}) as Record<string, unknown>;
    if (part.type === 'function_call') ids.calls.push(String(part.call_id));
    if (part.type === 'function_call_output') ids.results.push(String(part.call_id));
    if (part.type === 'tool_use' || part.type === 'function') {
      if (typeof part.id === 'string') ids.calls.push(part.id);
    }
    if (part.type === 'tool_result') ids.results.push(String(part.tool_use_id));
    if (part.role === 'tool') ids.results.push(String(part.tool_call_id));
    return value;
  });
  return ids;
}

describe.each(CHAT)('pieces of calls of %s', (_, config) => {
  const piece = (id: string | undefined, name: string | undefined, text: string): ProviderEvent => ({
    data: {
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'm',
      choices: [
        {
          index: 0,
          delta: {
            tool_calls: [
              {
                index: 0,
                ...(id && { id, type: 'function' }),
                function: { ...(name && { name }), arguments: text },
              },
            ],
          },
          finish_reason: null,
        },
      ],
    },
  });
  const withPieces =
    (...pieces: ProviderEvent[]) =>
    (events: ProviderEvent[]) => [events[0]!, ...pieces, ...events.slice(-3)];

  it.each([
    ['of one tool', 'delete_rows', 'not valid JSON'],
    ['of two tools', 'other', 'without the call that they belong to'],
  ])('%s under one index are no calls without arguments', async (_case, second, wrong) => {
    const { inputSchema } = bench.tools[0]!;
    bench.tools.push(toolOf('other', (input) => made.push(input), { inputSchema }));
    const wire = withPieces(
      piece('a', 'delete_rows', ''),
      piece('b', second, ''),
      piece(undefined, undefined, '{"filter":'),
      piece(undefined, undefined, '"id=5"}'),
      piece(undefined, undefined, '{"filter":"id=6"}'),
    );
    bench.provider.reply({ reason: 'tool_calls', wire }, { text: 'I see.' });
    expect(summaryOf(await bench.say(config)).status).toEqual({ state: COMPLETED });
    expect(made).toEqual([]);
    expect(await bodyOf(2)).toContain(wrong);
  });

  it('of several calls without arguments are whole', async () => {
    const { inputSchema } = bench.tools[0]!;
    bench.tools.push(toolOf('other', (input) => made.push(input), { inputSchema }));
    const wire = withPieces(piece('a', 'delete_rows', ''), piece('b', 'other', ''));
    bench.provider.reply({ reason: 'tool_calls', wire }, { text: 'Done.' });
    expect(summaryOf(await bench.say(config)).status).toEqual({ state: COMPLETED });
    expect(made).toEqual([{}, {}]);
  });
});

it.each([
  ['{"limit":9007199254740993}', '9007199254740993'],
  ['{"limit":1e999}', '1e999'],
])('a call with a number that would change is not made: %s', async (input, number) => {
  bench.provider.reply({ calls: [rows(input)] }, { text: 'I see.' });
  expect(summaryOf(await bench.say()).status).toEqual({ state: COMPLETED });
  expect(made).toEqual([]);
  expect(await bodyOf(2)).toContain(`the number ${number} has too many digits`);
});

it('a call with exact numbers and digits in texts is made', async () => {
  const input = '{"limit":9007199254740992,"filter":"id=9007199254740993 \\"1e999"}';
  bench.provider.reply({ calls: [rows(input)] }, { text: 'Done.' });
  expect(summaryOf(await bench.say()).status).toEqual({ state: COMPLETED });
  expect(made).toEqual([JSON.parse(input)]);
});

it('a call that has begun and not ended is an answer that broke off', async () => {
  const wire = (events: ProviderEvent[]) =>
    events.filter(({ data }) => !JSON.stringify(data).includes('content_block_stop'));
  bench.provider.reply(
    { text: 'I do it.', calls: [rows({ filter: 'id=5' })], wire },
    { calls: [rows({ filter: 'id=5' })] },
    { text: 'Done.' },
  );
  const { status } = summaryOf(await bench.say({ model: 'anthropic/claude-sonnet-4-5' }));
  expect(status).toEqual({ state: COMPLETED });
  expect(made).toEqual([{ filter: 'id=5' }]);
  expect(bench.provider.requests).toHaveLength(3);
});

describe('the end of an answer', () => {
  const compatible = { model: 'openai-compatible/llama3', key: 'mine' };
  const google = { model: 'google/gemini-2.5-flash' };
  const anthropic = { model: 'anthropic/claude-sonnet-4-5' };

  it.each([
    [compatible, 'stop'],
    [compatible, 'eos'],
    [compatible, 'stop_sequence'],
    [compatible, 'function_call'],
    [compatible, 'tool_use'],
    [compatible, 'COMPLETE'],
    [anthropic, 'end_turn'],
    [google, 'STOP'],
  ])('%j with "%s" is whole, with calls and without', async (config, reason) => {
    bench.provider.reply({ calls: [rows({ filter: 'a' })], reason }, { text: 'Done.', reason });
    const { steps, status } = await stepsOf(config);
    expect(status).toEqual({ state: COMPLETED });
    expect(made).toEqual([{ filter: 'a' }]);
    expect(steps).toMatchObject([
      { finish: 'tool-calls', rawFinish: reason },
      { finish: 'stop', rawFinish: reason },
    ]);
  });

  it.each([
    [compatible, 'error'],
    [compatible, 'insufficient_system_resource'],
    [compatible, 'network_error'],
  ])('%j with "%s" is a failed call, which is made again', async (config, reason) => {
    bench.provider.reply({ text: 'half', calls: [rows({})], reason }, { text: 'whole' });
    const { artifacts } = summaryOf(await bench.say(config));
    expect(artifacts).toMatchObject({ 'reply-1': { text: 'whole', closed: true } });
    bench.provider.answer(() => ({ text: 'half', reason }));
    const { status } = summaryOf(await bench.say({ ...config, retries: 1 }));
    expect(status).toEqual({
      state: FAILED,
      text: `openai-compatible broke off its answer (its reason is "${reason}"). It was tried 2 times.`,
    });
    expect(made).toEqual([]);
    expect(bench.tokens.spent).toHaveLength(4);
  });

  it.each([
    [anthropic, 'pause_turn', 'The provider has paused the answer'],
    [anthropic, 'model_context_window_exceeded', "the conversation has filled the model's context"],
    [google, 'RECITATION', "The provider's filter has stopped the answer"],
    [google, 'OTHER', 'a reason that Baton does not know'],
    [compatible, 'model_length', 'cut off at the limit'],
    [compatible, 'sensitive', "The provider's filter has stopped the answer"],
    [compatible, 'weird', 'a reason that Baton does not know'],
  ])('%j with "%s" fails the turn and is named', async (config, reason, text) => {
    bench.provider.answer(() => ({ text: 'half', reason }));
    const { status } = summaryOf(await bench.say(config));
    expect(status).toMatchObject({ state: FAILED, text: expect.stringContaining(text) as string });
    expect(status?.text).toContain(`The provider's reason is "${reason}".`);
    expect(bench.provider.requests).toHaveLength(1);
  });

  it.each([
    [google, 'MALFORMED_FUNCTION_CALL'],
    [google, 'UNEXPECTED_TOOL_CALL'],
    [compatible, 'function_call_filter: MALFORMED_FUNCTION_CALL'],
  ])('%j with "%s" is corrected once', async (config, reason) => {
    bench.provider.reply({ reason }, { text: 'Done.' });
    expect(summaryOf(await bench.say(config)).status).toEqual({ state: COMPLETED });
    expect(await bodyOf(2)).toContain('The provider could not read');
    bench.provider.answer(() => ({ reason }));
    expect(summaryOf(await bench.say(config)).status).toMatchObject({
      state: FAILED,
      text: expect.stringContaining('The provider could not read a call') as string,
    });
    expect(bench.provider.requests).toHaveLength(4);
  });

  it('is missing where a gateway cut the stream, whatever numbers came before', async () => {
    const wire = (events: ProviderEvent[]) =>
      events.slice(0, -1).map(({ data }) => ({
        data: { ...(data as object), usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2 } },
      }));
    bench.provider.reply({ text: 'half', wire }, { text: 'whole' });
    const { artifacts } = summaryOf(await bench.say(google));
    expect(artifacts).toMatchObject({ 'reply-1': { text: 'whole' } });
  });
});

it('a call of a cut-off answer that an earlier release recorded is not made', async () => {
  const journal = new MemoryJournal();
  const message = {
    role: 'assistant' as const,
    content: [{ type: 'tool-call' as const, toolCallId: 'a', toolName: 'delete_rows', input: {} }],
  };
  const usage = { inputTokens: 1, outputTokens: 1, reasoningTokens: 0, cachedInputTokens: 0 };
  await journal.append({ kind: 'asked', at: 0 });
  await journal.append({ kind: 'step', message, finish: 'length', usage, model: 'openai/gpt-5-mini' });
  const { status } = summaryOf(await bench.run(bench.turn({}, { journal, attempt: 2 })));
  expect(status).toMatchObject({ state: FAILED, text: expect.stringContaining('cut off') as string });
  expect(made).toEqual([]);
});
