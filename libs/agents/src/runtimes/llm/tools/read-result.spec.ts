import { TaskState } from '@baton/a2a';
import { MemoryJournal } from '../../../../../../test/support/agents/turns.js';
import { LlmBench, summaryOf, toolOf } from '../llm-runtime.fixture.js';

let bench: LlmBench;
beforeAll(async () => {
  bench = await LlmBench.start();
});
afterEach(() => bench.reset());
afterAll(() => bench.stop());

/** Numbered lines of 10 characters. */
const LONG = Array.from({ length: 5_000 }, (_, i) => `line ${String(i).padStart(4, '0')}\n`).join('');
const search = { name: 'search', input: { city: 'Bern' } };
const offered = (number: number): Promise<string[]> =>
  bench.provider
    .request(number)
    .then(({ body }) => (body as { tools?: { name: string }[] }).tools?.map(({ name }) => name) ?? []);

/** The newest result of a tool in a request. */
async function newestResult(number: number): Promise<string> {
  const { input } = (await bench.provider.request(number)).body as {
    input: { type: string; output: string }[];
  };
  return input.findLast(({ type }) => type === 'function_call_output')?.output ?? '';
}

const longTool = () =>
  toolOf('search', () => '', {
    execute: () => Promise.resolve({ ok: true, content: 'shown to callers', text: LONG, limit: 30_000 }),
  });

const read = (input: object) => ({ calls: [{ name: 'read_result', input }] });

describe('a result that is longer than its limit', () => {
  it('is read on with a tool, page by page, which is offered from then on', async () => {
    bench.tools.push(longTool());
    bench.provider.reply(
      { calls: [search] },
      read({ result: 'call-1-1', from: 30_000 }),
      read({ result: 'call-1-1', from: 49_990 }),
      { text: 'done' },
    );
    const { status } = summaryOf(await bench.say());
    expect(status).toEqual({ state: TaskState.TASK_STATE_COMPLETED });
    expect(await offered(1)).toEqual(['search']);
    expect(await offered(2)).toEqual(['search', 'read_result']);
    expect(await newestResult(2)).toBe(
      `${LONG.slice(0, 30_000)}\n[cut off: these are the first 30000 of 50000 characters. ` +
        'To read on, call read_result with {"result":"call-1-1","from":30000}]',
    );
    expect(await newestResult(3)).toBe(
      `${LONG.slice(30_000, 50_000)}\n[characters 30000 to 50000 of 50000. This is its end.]`,
    );
    expect(await newestResult(4)).toBe('line 4999\n\n[characters 49990 to 50000 of 50000. This is its end.]');
  });

  it.each([
    [{ from: 0 }, `${LONG.slice(0, 20_000)}\n[characters 0 to 20000 of 50000. To read on: from 20000.]`],
    [
      { find: 'line 3000' },
      `${LONG.slice(29_800, 49_800)}\n[characters 29800 to 49800 of 50000. To read on: from 49800.]`,
    ],
    [{ find: 'line 3000', from: 40_000 }, 'The text is not in the result after character 40000.'],
    [{ from: 50_000 }, 'The result has 50000 characters. There is no more.'],
    [{ result: 'call-9-9' }, 'There is no result "call-9-9".'],
  ])('is read with %j', async (input, page) => {
    bench.tools.push(longTool());
    bench.provider.reply({ calls: [search] }, read({ result: 'call-1-1', ...input }), { text: 'done' });
    await bench.say();
    expect(await newestResult(3)).toBe(page);
  });

  it('is read by the next attempt after the death of the worker', async () => {
    bench.tools.push(longTool());
    bench.provider.reply({ calls: [search] }, read({ result: 'call-1-1', from: 49_990 }));
    const turn = bench.turn({}, { journal: new MemoryJournal() });
    const dead = new AbortController();
    // The third request gets no answer.
    bench.provider.answer(() => ({ text: 'never', after: new Promise(() => undefined) }));
    const first = bench.run(turn, dead.signal);
    await bench.provider.request(3);
    dead.abort('lease-lost');
    await first;
    bench.provider.answer(() => ({ text: 'done' }));
    const { status } = summaryOf(await bench.run({ ...turn, attempt: 2 }));
    expect(status).toEqual({ state: TaskState.TASK_STATE_COMPLETED });
    expect(await newestResult(4)).toContain('line 4999');
    expect(await offered(4)).toEqual(['search', 'read_result']);
  });
});
