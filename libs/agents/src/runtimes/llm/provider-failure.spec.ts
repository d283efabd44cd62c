import { TaskState } from '@baton/a2a';
import { ModelProvider } from '../../../../../test/support/model-provider/model-provider.js';
import { MemoryJournal } from '../../../../../test/support/agents/turns.js';
import { KEY, LlmBench, reply, summaryOf, toolOf } from './llm-runtime.fixture.js';

const { TASK_STATE_COMPLETED: COMPLETED, TASK_STATE_FAILED: FAILED } = TaskState;

let bench: LlmBench;
beforeAll(async () => {
  bench = await LlmBench.start();
});
afterEach(() => bench.reset());
afterAll(() => bench.stop());

describe('a provider that fails', () => {
  const explained = async (config: Record<string, unknown> = {}) => {
    const { status } = summaryOf(await bench.say(config));
    expect(status?.state).toBe(FAILED);
    expect(status?.text).not.toContain(KEY);
    return status?.text;
  };

  it.each([
    [
      400,
      `bad ${KEY}\n thing`,
      'openai refused the request (400): bad [key] thing. Check the settings of the agent for "gpt-5-mini".',
    ],
    [
      401,
      `Incorrect API key ${KEY}`,
      'openai refused the key (401): Incorrect API key [key]. Check the secret "openai".',
    ],
    [
      403,
      'no',
      'openai refused the request (403): no. Check what the key "openai" may do, and whether it may use "gpt-5-mini".',
    ],
    [
      404,
      'no',
      'openai has no such model or address (404): no. Check model ("gpt-5-mini") and baseUrl of the agent.',
    ],
  ])('with %i is not asked again: the task fails', async (status, error, text) => {
    bench.provider.reply({ status, error });
    expect(await explained()).toBe(text);
    expect(bench.provider.requests).toHaveLength(1);
  });

  it('with 429 and 5xx is asked again after the time it asks for, and no word is said twice', async () => {
    bench.provider.reply(
      { status: 429, headers: { 'retry-after-ms': '300' } },
      { status: 503 },
      { text: ['a', 'b'] },
    );
    const began = performance.now();
    const { artifacts, status } = summaryOf(await bench.say());
    expect(performance.now() - began).toBeGreaterThanOrEqual(300);
    expect(artifacts).toEqual({ 'reply-1': reply('ab') });
    expect(status).toEqual({ state: COMPLETED });
  });

  it('is in the log of the operator, with its own words and without secrets', async () => {
    bench.provider.reply({
      status: 400,
      body: { error: { code: 'bad_field', type: 'odd', message: `no ${KEY}` } },
    });
    await bench.say();
    const line = JSON.parse(
      bench.logged.find((text) => text.includes('model call failed')) ?? '{}',
    ) as object;
    expect(line).toMatchObject({
      tenantId: 'tenant-1',
      provider: 'openai',
      model: 'gpt-5-mini',
      answer: { status: 400, code: 'bad_field', type: 'odd', message: 'no [key]' },
    });
    expect(bench.logged.join()).not.toContain(KEY);
  });

  it('does not take a setting: it is left out, and that is in the log of the operator', async () => {
    bench.provider.reply({ text: 'ok' });
    await bench.say({ temperature: 1 });
    const line = JSON.parse(bench.logged.find((text) => text.includes('settings ignored')) ?? '{}') as object;
    expect(line).toMatchObject({ settings: [expect.stringContaining('temperature')] });
  });

  it('waits as long as the body of a 429 asks for', async () => {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '0.3s' }];
    bench.provider.reply(
      { status: 429, body: { error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'no', details } } },
      { text: 'a' },
    );
    const began = performance.now();
    expect(summaryOf(await bench.say({ model: 'google/gemini-2.5-flash' })).status).toEqual({
      state: COMPLETED,
    });
    expect(performance.now() - began).toBeGreaterThanOrEqual(300);
  });

  it('is called again over the same connection after a whole answer', async () => {
    bench.tools.push(toolOf('weather', () => 'sun'));
    bench.provider.reply({ calls: [{ name: 'weather', input: { city: 'Bern' } }] }, { text: 'Sunny.' });
    const before = bench.provider.connections;
    await bench.say();
    expect(bench.provider.requests).toHaveLength(2);
    expect(bench.provider.connections - before).toBeLessThanOrEqual(1);
  });

  it('is given up after the retries of the agent', async () => {
    bench.provider.answer(() => ({ status: 500 }));
    expect(await explained({ retries: 1 })).toBe(
      'openai failed (500): scripted error. Try again later. It was tried 2 times.',
    );
    bench.provider.reply({ status: 429, headers: { 'retry-after': '3600' } });
    expect(await explained()).toMatch(
      /^openai takes no more requests for now \(429\).*asks to wait for 3600 s\.$/,
    );
  });

  it('leaves each failed call with its time, reason and tokens in the journal, whatever comes after it', async () => {
    bench.provider.reply(
      { status: 500, error: `no ${KEY}` },
      { text: ['one ', 'two ', 'three'], fault: { kind: 'end', after: 4 } },
      { calls: [{ name: 'weather', input: {} }] },
      { status: 401 },
    );
    bench.tools.push(toolOf('weather', () => 'sun'));
    const journal = new MemoryJournal();
    const { status } = summaryOf(await bench.run(bench.turn({}, { journal })));
    expect(status).toMatchObject({ state: FAILED });
    type Entry = { kind: string; at: string; ms: number; error?: string; usage: { outputTokens: number } };
    const calls = journal.entries
      .map(({ value }) => value as Entry)
      .filter(({ kind }) => kind === 'step' || kind === 'failed-call');
    expect(calls.map(({ kind, error }) => [kind, error])).toEqual([
      ['failed-call', 'openai failed (500): no [key]. Try again later.'],
      ['failed-call', expect.stringMatching(/^openai /)],
      ['step', undefined],
      ['failed-call', 'openai refused the key (401): scripted error. Check the secret "openai".'],
    ]);
    const times = calls.map(({ at }) => Date.parse(at));
    expect(times).toEqual([...times].sort((a, b) => a - b));
    for (const { ms } of calls) expect(ms).toBeGreaterThanOrEqual(0);
    // The broken answer has been paid for.
    expect(calls[1]?.usage.outputTokens).toBeGreaterThan(0);
    expect(JSON.stringify(journal.entries)).not.toContain(KEY);
  });

  it.each(['break', 'end', 'garbage', 'error'] as const)(
    'in the middle of its answer (%s) is asked again, and the new answer replaces the old one',
    async (kind) => {
      bench.provider.reply(
        { text: ['one ', 'two ', 'three'], fault: { kind, after: 3 } },
        { text: ['four'] },
      );
      const outputs = await bench.say();
      expect(summaryOf(outputs).artifacts).toEqual({ 'reply-1': reply('four') });
      expect(summaryOf(outputs).status).toEqual({ state: COMPLETED });
      expect(bench.provider.requests).toHaveLength(2);
    },
  );

  it('leaves nothing of a broken answer behind when the next one is a call', async () => {
    bench.tools.push(toolOf('weather', () => 'rain'));
    bench.provider.reply(
      { text: ['one ', 'two'], fault: { kind: 'end', after: 4 } },
      { calls: [{ name: 'weather', input: { city: 'Bern' } }] },
      { text: 'Rain.' },
    );
    const { artifacts } = summaryOf(await bench.say());
    expect(artifacts['reply-1']?.text).toBe('');
    expect(artifacts['reply-2']?.text).toBe('Rain.');
  });

  it.each([
    ['firstToken', { kind: 'stall', after: 1 }, 'openai did not begin to answer within 0.2 s (firstToken'],
    [
      'stall',
      { kind: 'stall', after: 3 },
      'openai fell silent in the middle of its answer within 0.2 s (stall',
    ],
  ] as const)('and falls silent is given up after %s', async (setting, fault, text) => {
    bench.provider.reply({ text: ['one ', 'two'], fault });
    expect(await explained({ [setting]: '200ms', retries: 0 })).toContain(text);
    const { answered } = await bench.provider.request(1);
    expect(await answered).toBe(false);
  });

  it('and goes on for ever is given up after timeout', async () => {
    bench.provider.reply({ text: Array.from({ length: 500 }, () => 'w '), delayMs: 20 });
    expect(await explained({ timeout: '300ms', retries: 0 })).toContain('within 0.3 s (timeout');
  });

  it('and is not there, or may not be called, is named', async () => {
    const gone = await ModelProvider.start();
    await gone.stop();
    expect(await explained({ baseUrl: gone.url, retries: 0 })).toBe(
      'openai cannot be reached: it refused the connection.',
    );
    expect(await explained({ baseUrl: 'http://10.1.1.1/v1' })).toMatch(
      /^openai cannot be called: .*10\.1\.1\.1/,
    );
  });

  it('and has no key says which secret to set', async () => {
    expect(await explained({ key: 'missing' })).toBe(
      'There is no key for openai: set the secret "missing" on the page Secrets of the console, or with node bin/baton.cjs secrets set missing < file.',
    );
  });
});
