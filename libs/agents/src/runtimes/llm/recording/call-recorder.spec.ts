import { type CallRecord, filePart, plainTextPart, type Turn } from '../../../agent-runtime.js';
import { MemoryJournal, turnSecrets, userMessage } from '../../../../../../test/support/agents/turns.js';
import { KEY, LlmBench, toolOf } from '../llm-runtime.fixture.js';
import { type CallRecordDetail, callRecordDetail } from './call-record-detail.js';

let bench: LlmBench;
beforeAll(async () => {
  bench = await LlmBench.start();
});
afterEach(() => bench.reset());
afterAll(() => bench.stop());

const KIB = 1024;

/** Runs a turn; what is recorded of its calls, by position. */
async function recorded(
  config: Record<string, unknown>,
  message: Turn['message'] | string = 'hi',
  fields: Parameters<LlmBench['turn']>[1] = {},
) {
  const journal = new MemoryJournal();
  const held = new Map<number, CallRecord>();
  const records = {
    byDefault: 'none' as const,
    hold: (record: CallRecord) => void held.set(record.position, record),
  };
  await bench.run(bench.turn(config, { records, journal, ...fields }, message));
  return { stored: storedIn(journal), held };
}

const storedIn = ({ records }: MemoryJournal): Map<number, CallRecord> =>
  new Map([...records].map(([position, json]) => [position, { position, json }]));

const detail = (record: CallRecord | undefined): CallRecordDetail => {
  const found = callRecordDetail(JSON.parse(record?.json ?? 'null'));
  if (!found) throw new Error('there is no record of the form that readers know');
  return found;
};
const only = (records: ReadonlyMap<number, CallRecord>): CallRecordDetail => {
  expect(records.size).toBe(1);
  return detail([...records.values()][0]);
};

describe.each([
  ['openai/gpt-5-mini', {}],
  ['openai/gpt-4o', { api: 'chat' }],
  ['anthropic/claude-sonnet-4-5', {}],
  ['google/gemini-2.5-flash', {}],
  ['openai-compatible/llama3', { key: 'mine' }],
] as const)('of a call of %s', (model, more) => {
  it('request and answer are recorded', async () => {
    bench.tools.push(toolOf('weather', () => 'clear'));
    bench.provider.reply(
      { calls: [{ name: 'weather', input: { city: 'Bern' } }], usage: { input: 12, output: 3 } },
      { text: 'Clear.' },
    );
    const { stored, held } = await recorded({
      model,
      ...more,
      record: 'all',
      prompt: 'Be kind.',
      maxOutputTokens: 4_000,
    });
    expect(held.size).toBe(0);
    expect([...stored.keys()]).toEqual([2, 4]);
    const [first, second] = [...stored.values()].map(detail);
    expect(first!.sent).toMatchObject({
      instructions: 'Be kind.',
      messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }],
      tools: [{ name: 'weather', description: 'The weather', inputSchema: { required: ['city'] } }],
      parameters: { maxOutputTokens: 4_000 },
      left: { messages: 0, tools: 0 },
    });
    expect(first!.said).toMatchObject({
      text: '',
      calls: [{ tool: 'weather', input: expect.stringMatching(/"city": ?"Bern"/) as string }],
      finish: 'tool-calls',
      usage: { inputTokens: 12, outputTokens: 3 },
      error: null,
    });
    expect(second!.sent!.messages.map((message) => (message as { role: string }).role)).toEqual([
      'user',
      'assistant',
      'tool',
    ]);
    expect(second!.said).toMatchObject({ text: 'Clear.', finish: 'stop', left: { characters: 0, calls: 0 } });
  });
});

describe('what is recorded', () => {
  it('is nothing without the setting, and the worker decides for agents that have none', async () => {
    bench.provider.answer(() => ({ text: 'ok' }));
    for (const config of [{}, { record: 'none' }]) {
      const { stored, held } = await recorded(config);
      expect([stored.size, held.size]).toEqual([0, 0]);
    }
    const records = { byDefault: 'all' as const, hold: () => undefined };
    const [kept, without] = [new MemoryJournal(), new MemoryJournal()];
    await bench.run(bench.turn({}, { records, journal: kept }));
    await bench.run(bench.turn({ record: 'none' }, { records, journal: without }));
    expect([kept.records.size, without.records.size]).toEqual([1, 0]);
  });

  it('is stored for a call that fails, and held for one that does not', async () => {
    bench.provider.reply({ status: 500, error: 'the disk is full' }, { text: 'ok' });
    const { stored, held } = await recorded({ record: 'failed', prompt: 'Be kind.' });
    const failed = only(stored);
    expect(failed.sent!.instructions).toBe('Be kind.');
    expect(failed.said).toMatchObject({
      text: '',
      finish: null,
      error: expect.stringContaining('openai failed (500)') as string,
      complaint: { status: 500, message: 'the disk is full' },
    });
    expect(only(held).said.text).toBe('ok');
  });

  it('has what arrived of an answer that fell silent', async () => {
    bench.provider.reply(
      { text: ['Half of ', 'an answer'], fault: { kind: 'stall', after: 5 } },
      { text: 'whole' },
    );
    const { stored } = await recorded({ record: 'failed', stall: '500ms' });
    expect(only(stored).said).toMatchObject({
      text: expect.stringMatching(/^Half of /) as string,
      finish: null,
    });
  });

  it('is what the model wrote, also if Baton makes nothing of it', async () => {
    bench.tools.push(toolOf('weather', () => 'clear'));
    bench.provider.reply({ calls: [{ name: 'weather', input: '{"city": "Be' }] }, { text: 'ok' });
    const { stored } = await recorded({ model: 'openai/gpt-4o', api: 'chat', record: 'all' });
    expect(detail([...stored.values()][0]).said.calls).toMatchObject([
      { tool: 'weather', input: '{"city": "Be' },
    ]);
  });
});

describe('a record has no secret', () => {
  const spellings = [
    KEY,
    Buffer.from(KEY).toString('base64'),
    encodeURIComponent(KEY),
    JSON.stringify({ [KEY]: 1 }),
  ];
  const asText = ({ stored }: { stored: ReadonlyMap<number, CallRecord> }): string =>
    [...stored.values()].map(({ json }) => json).join('\n');
  const expectClean = (text: string): void => {
    for (const form of [KEY, Buffer.from(KEY).toString('base64').replace(/=+$/, '')])
      expect(text).not.toContain(form);
  };

  it('if the caller, the prompt, a tool, the model or the provider quotes it', async () => {
    bench.tools.push(toolOf('weather', () => ({ [KEY]: spellings }), { description: `Use ${KEY}` }));
    bench.provider.reply(
      { status: 500, error: `the key ${KEY} is slow` },
      { text: `I know ${KEY}`, calls: [{ name: 'weather', input: { city: KEY, [KEY]: 1 } }] },
      { text: spellings.join(' ') },
    );
    const text = asText(await recorded({ record: 'all', prompt: `My key is ${KEY}` }, spellings.join(' ')));
    expectClean(text);
    expect(text).toContain('[secret]');
  });

  it('also where a text is cut in the middle of it', async () => {
    // Every place of the cut, from before the secret to behind it.
    for (let at = 0; at <= KEY.length; at++) {
      bench.provider.reset();
      bench.provider.reply({ text: `${'y'.repeat(128 * KIB - at)}${KEY}` });
      const text = asText(
        await recorded(
          { record: 'all', prompt: `${'z'.repeat(128 * KIB - at)}${KEY}` },
          `${'x'.repeat(32 * KIB - at)}${KEY} and more`,
        ),
      );
      expectClean(text);
      for (const letter of ['x', 'y', 'z']) {
        // No beginning of it stays behind the text before it.
        expect(text).not.toContain(`${letter}${KEY.slice(0, 4)}`);
      }
    }
  });

  it('that the turn has read for something else', async () => {
    const other = 'other-secret-value';
    const secrets = turnSecrets({ openai: KEY, other });
    await secrets.get('other', []);
    bench.provider.reply({ text: other });
    expect(asText(await recorded({ record: 'all' }, other, { secrets }))).not.toContain(other);
  });
});

describe('a record is of bounded size', () => {
  it('keeps the newest messages and counts those that it leaves out', async () => {
    const parts = Array.from({ length: 20 }, (_, i) => plainTextPart(`${i} ${'x'.repeat(40 * KIB)}`));
    bench.provider.reply({ text: 'ok' });
    const { stored } = await recorded({ record: 'all' }, userMessage(parts));
    const [record] = [...stored.values()];
    expect(Buffer.byteLength(record!.json)).toBeLessThan(140 * KIB);
    const { messages } = detail(record).sent!;
    expect(messages).toHaveLength(1);
    expect(JSON.stringify(messages)).toContain('more characters are not recorded');
  });

  it('names files by their size', async () => {
    bench.provider.reply({ text: 'ok' });
    const image = filePart('a.png', 'image/png', Buffer.alloc(100_000, 1));
    const { stored } = await recorded({ record: 'all' }, userMessage([plainTextPart('look'), image]));
    const { json } = [...stored.values()][0]!;
    expect(json).toContain('not recorded)');
    expect(json.length).toBeLessThan(4_000);
  });

  it('whatever a model and its tools say', async () => {
    const escape = '\u0001'.repeat(100_000);
    for (let i = 0; i < 40; i++)
      bench.tools.push(toolOf(`tool${i}`, () => escape, { description: escape.slice(0, 9_000) }));
    bench.provider.reply(
      { text: escape, reasoning: escape, calls: [{ name: 'tool0', input: { city: escape } }] },
      { text: escape },
    );
    const { stored } = await recorded({ record: 'all', prompt: escape }, escape);
    for (const { json } of stored.values()) expect(Buffer.byteLength(json)).toBeLessThan(900 * KIB);
    const [first] = [...stored.values()].map(detail);
    expect(first!.sent!.left.tools).toBeGreaterThan(0);
    expect(first!.said.left.characters).toBeGreaterThan(0);
  });
});
