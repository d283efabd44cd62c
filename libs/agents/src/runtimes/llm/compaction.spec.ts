import { TaskState } from '@baton/a2a';
import type { ModelRequest, Reply } from '../../../../../test/support/model-provider/model-provider.js';
import { MemoryJournal } from '../../../../../test/support/agents/turns.js';
import { Dialogue } from './approval/dialogue.fixture.js';
import { LlmBench, summaryOf, toolOf } from './llm-runtime.fixture.js';

const { TASK_STATE_COMPLETED: COMPLETED, TASK_STATE_FAILED: FAILED } = TaskState;

let bench: LlmBench;
beforeAll(async () => {
  bench = await LlmBench.start();
});
afterEach(() => bench.reset());
afterAll(() => bench.stop());

const PAGE = 40_000;
const page = (number: number): string => `page ${number} `.repeat(PAGE).slice(0, PAGE);
const look = { name: 'look', input: { city: 'Bern' } };

/** As a provider counts: about four characters each. */
const tokensOf = ({ body }: ModelRequest): number => Math.ceil(JSON.stringify(body).length / 4);
const isSummary = ({ body }: ModelRequest): boolean => !('tools' in body);
const summaries = (): ModelRequest[] => bench.provider.requests.filter(isSummary);

/** A model with a window that looks up so many pages, and refuses what its window has no room for. */
function model({
  window,
  pages,
  name = 'm',
  counts = true,
}: {
  window: number;
  pages: number;
  name?: string;
  counts?: boolean;
}) {
  let looked = 0;
  let refused = 0;
  bench.tools.push(toolOf('look', () => page(++looked)));
  const reads = (request: ModelRequest): Reply => {
    if (request.model !== name) return { status: 503 };
    const tokens = tokensOf(request);
    if (tokens > window) {
      refused += 1;
      return { status: 400, error: `This model's maximum context length is ${window} tokens` };
    }
    const usage = counts ? { input: tokens, output: 50 } : { input: 0, output: 0 };
    if (isSummary(request)) return { text: `SUMMARY of ${looked} pages`, usage };
    return looked < pages ? { calls: [look], usage } : { text: 'done', usage };
  };
  bench.provider.answer(reads);
  return { reads, looked: () => looked, refused: () => refused };
}

const config = (fields: Record<string, unknown> = {}) => ({
  model: 'openai-compatible/m',
  key: 'mine',
  steps: 100,
  ...fields,
});

const textOf = ({ body }: ModelRequest): string => JSON.stringify(body.messages);

describe('a task that outgrows the context of its model', () => {
  it('stays within it over 50 steps with results of 40 KB, and goes on with summaries', async () => {
    const run = model({ window: 128_000, pages: 50 });
    const journal = new MemoryJournal();
    const turn = bench.turn(config({ prompt: 'You read pages.' }), { journal }, 'Read all pages about Bern');
    const { status, usage } = summaryOf(await bench.run(turn));
    expect(status).toEqual({ state: COMPLETED });
    expect({ looked: run.looked(), refused: run.refused() }).toEqual({ looked: 50, refused: 0 });
    // Not with each step: a summary costs a call.
    expect(summaries().length).toBeGreaterThan(2);
    expect(summaries().length).toBeLessThan(12);
    const last = textOf(bench.provider.requests.at(-1)!);
    expect(last).toContain('Read all pages about Bern');
    expect(last).toContain('SUMMARY of');
    expect(last).toContain(page(50).slice(0, 39_000));
    // Summaries are counted as all calls.
    expect(usage).toMatchObject({
      inputTokens: bench.provider.requests.reduce((sum, request) => sum + tokensOf(request), 0),
    });
    expect(bench.tokens.spent).toHaveLength(bench.provider.requests.length);
    // A summary has the one before, and the prompt of the agent.
    const [, second] = summaries().map(textOf);
    expect(second).toContain('SUMMARY of');
    expect(second).toContain('You read pages.');
  });

  it('makes no summary again after the death of the worker', async () => {
    model({ window: 30_000, pages: 5 });
    const turn = bench.turn(config({ contextWindow: 30_000 }), { journal: new MemoryJournal() });
    const dead = new AbortController();
    const first = bench.run(turn, dead.signal);
    const made = async (number: number): Promise<void> => {
      if (!isSummary(await bench.provider.request(number))) await made(number + 1);
      // The summary is stored when the next call is made.
      else await bench.provider.request(number + 1);
    };
    await made(1);
    dead.abort('lease-lost');
    await first;
    const before = summaries().length;
    const known = bench.provider.requests.length;
    const { status } = summaryOf(await bench.run({ ...turn, attempt: 2 }));
    expect(status).toEqual({ state: COMPLETED });
    expect(textOf(bench.provider.requests[known]!)).toContain('SUMMARY of');
    expect(isSummary(bench.provider.requests[known]!)).toBe(false);
    expect(before).toBe(1);
  });

  it('fits a fallback model with a smaller one', async () => {
    const run = model({ window: 20_000, pages: 6, name: 'small' });
    const fallback = [{ ...config(), model: 'openai-compatible/small', contextWindow: 20_000 }].map(
      ({ steps: _, ...settings }) => ({ ...settings, baseUrl: bench.provider.url }),
    );
    const { status } = summaryOf(await bench.say(config({ contextWindow: 1_000_000, retries: 0, fallback })));
    expect(status).toEqual({ state: COMPLETED });
    expect({ looked: run.looked(), refused: run.refused() }).toEqual({ looked: 6, refused: 0 });
  });

  it('learns of a smaller one from the refusal of the provider', async () => {
    const run = model({ window: 40_000, pages: 12 });
    const { status } = summaryOf(await bench.say(config()));
    expect(status).toEqual({ state: COMPLETED });
    expect(run.looked()).toBe(12);
    expect(run.refused()).toBeLessThan(3);
  });

  it('fails with compaction: off', async () => {
    model({ window: 30_000, pages: 5 });
    const { status } = summaryOf(await bench.say(config({ compaction: 'off' })));
    expect(status).toMatchObject({
      state: FAILED,
      text: expect.stringContaining('takes no request of this size'),
    });
    expect(summaries()).toHaveLength(0);
  });

  it('is summarised also if its server does not count tokens', async () => {
    const run = model({ window: 128_000, pages: 20, counts: false });
    const { status } = summaryOf(await bench.say(config()));
    expect(status).toEqual({ state: COMPLETED });
    expect({ looked: run.looked(), refused: run.refused() }).toEqual({ looked: 20, refused: 0 });
  });

  it('keeps the prompt and the calls that a person has approved', async () => {
    let paid = 0;
    const run = model({ window: 30_000, pages: 4 });
    bench.tools.push(toolOf('pay', () => `paid ${++paid}`, { needsApproval: true }));
    const { reads } = run;
    bench.provider.answer((request) => {
      const reply = reads(request);
      const said = JSON.stringify(request.body);
      if (reply.text !== 'done' || said.includes('paid 1')) return reply;
      return { ...reply, text: '', calls: [{ name: 'pay', input: { city: 'Bern' } }] };
    });
    const dialogue = new Dialogue(bench, config({ contextWindow: 30_000, compaction: { at: 0.4 } }));
    const asked = await dialogue.say('Read all pages, then pay');
    expect(asked.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    const requests = bench.provider.requests.length;
    expect(await dialogue.say('yes')).toMatchObject({ state: COMPLETED });
    expect(paid).toBe(1);
    const last = textOf(bench.provider.requests.at(-1)!);
    expect(last).toContain('Read all pages, then pay');
    expect(last).toContain('paid 1');
    expect(last).toContain('SUMMARY of 4 pages');
    expect(bench.provider.requests.length).toBeGreaterThan(requests);
  });

  it('fails if there is no summary', async () => {
    const run = model({ window: 30_000, pages: 9 });
    bench.provider.answer((request) => ({
      ...run.reads(request),
      ...(isSummary(request) && { text: '' }),
    }));
    const { status } = summaryOf(await bench.say(config({ contextWindow: 30_000 })));
    expect(status).toEqual({
      state: FAILED,
      text: 'The conversation has filled the context of the model, and the model gave no summary of it.',
    });
  });

  it('reads less at once of many results of one step, and can read on', async () => {
    bench.tools.push(toolOf('look', () => page(1)));
    bench.provider.reply({ calls: [look, look, look, look] }, { text: 'done' });
    await bench.say(config({ contextWindow: 32_000 }));
    const { body } = await bench.provider.request(2);
    const { messages, tools } = body as { messages: { role: string; content: string }[]; tools: unknown[] };
    const results = messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
    expect(results).toHaveLength(4);
    for (const [i, text] of results.entries())
      expect(text).toMatch(
        new RegExp(
          `first 6000 of 40000 characters. To read on, call read_result with \\{"result":"call-1-${i + 1}","from":6000\\}\\]$`,
        ),
      );
    expect(JSON.stringify(tools)).toContain('read_result');
  });
});
