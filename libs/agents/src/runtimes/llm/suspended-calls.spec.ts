import { Suspension } from '../../suspension.js';
import { MemoryJournal } from '../../../../../test/support/agents/turns.js';
import { LlmBench, toolOf } from './llm-runtime.fixture.js';
import type { ToolCallContext } from './tools/tool-sources.js';

let bench: LlmBench;
beforeAll(async () => {
  bench = await LlmBench.start();
});
afterAll(() => bench.stop());
beforeEach(() => bench.reset());

const ask = (city: string) => ({ name: 'ask', input: { city } });
const look = { name: 'look', input: { city: 'Bern' } };

/** The results of the model's calls in the last request. */
const results = (): string[] => {
  const { input } = bench.provider.requests.at(-1)!.body as { input: { type?: string; output?: string }[] };
  return input.filter(({ type }) => type === 'function_call_output').map(({ output }) => output ?? '');
};

/** How many tool calls the metrics count, by outcome. */
async function timesOfCalls(): Promise<Record<'ok' | 'suspended', number>> {
  const { body } = await bench.metrics.render();
  const counted = (outcome: string): number =>
    Number(
      new RegExp(`baton_tool_call_seconds_count\\{kind="agent",outcome="${outcome}"\\} (\\d+)`).exec(
        body,
      )?.[1] ?? 0,
    );
  return { ok: counted('ok'), suspended: counted('suspended') };
}

describe('calls whose results come from other tasks', () => {
  it('are waited for together, once all other calls have their results, which are kept', async () => {
    const waitFor = new Set(['Rome', 'Oslo']);
    let looked = 0;
    let finishLook = (): void => undefined;
    const looking = new Promise<void>((resolve) => (finishLook = resolve));
    bench.tools.push(
      toolOf('ask', ({ city }: { city: string }) => {
        if (city === 'Oslo') finishLook();
        if (waitFor.has(city)) throw new Suspension([`task of ${city}`]);
        return `about ${city}`;
      }),
      toolOf('look', async () => {
        await looking;
        return `look ${++looked}`;
      }),
    );
    bench.provider.reply({ calls: [ask('Rome'), look, ask('Oslo')] }, { text: 'all there' });
    const turn = bench.turn({}, { journal: new MemoryJournal() });
    const before = await timesOfCalls();
    const waiting = await bench.run(turn).catch((error: unknown) => error);
    expect(waiting).toBeInstanceOf(Suspension);
    expect((waiting as Suspension).taskIds).toEqual(['task of Rome', 'task of Oslo']);
    waitFor.clear();
    await bench.run({ ...turn, attempt: 2 });
    expect(results()).toEqual(['about Rome', 'look 1', 'about Oslo']);
    expect(bench.provider.requests).toHaveLength(2);
    // Three results, and two calls that were made twice.
    const counted = await timesOfCalls();
    expect([counted.ok - before.ok, counted.suspended - before.suspended]).toEqual([3, 2]);
  });

  it('are known by their place, also where a model numbers its calls anew with every answer', async () => {
    const places: Pick<ToolCallContext, 'id' | 'lane'>[] = [];
    bench.tools.push({
      ...toolOf('ask', () => 'ok'),
      execute: async (_, { id, lane }) => {
        places.push({ id, lane });
        return { ok: true, content: 'ok' };
      },
    });
    bench.tools.push(toolOf('look', () => 'ok'));
    const first = { id: 'call_1' };
    bench.provider.reply(
      { calls: [{ ...ask('Rome'), ...first }, look, ask('Oslo')] },
      { calls: [look, { ...ask('Rome'), ...first }] },
      { text: 'done' },
    );
    await bench.run(bench.turn());
    expect(places).toEqual([
      { id: 'call-1-1', lane: 1 },
      { id: 'call-1-3', lane: 2 },
      { id: 'call-2-2', lane: 1 },
    ]);
  });
});
