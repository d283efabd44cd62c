import { TaskState } from '@baton/a2a';
import { LlmBench, summaryOf, toolOf } from './llm-runtime.fixture.js';

const { TASK_STATE_FAILED: FAILED } = TaskState;

let bench: LlmBench;
beforeAll(async () => {
  bench = await LlmBench.start();
});
afterEach(() => bench.reset());
afterAll(() => bench.stop());

describe('tokens', () => {
  const weather = { name: 'weather', input: { city: 'Bern' } };

  it('are added up over the steps and bound by the budget of the run', async () => {
    bench.tools.push(toolOf('weather', () => 'sun'));
    const usage = { input: 300, output: 100 };
    bench.provider.answer(() => ({ calls: [weather], usage }));
    const { status, usage: said } = summaryOf(await bench.say({ budget: { tokens: 1000 } }));
    expect(status?.text).toMatch(/^The run has used (800|1200) tokens, and its budget of 1000 /);
    expect(said).toMatchObject({ inputTokens: expect.any(Number) as number });
    const [first] = bench.provider.requests;
    expect(first?.body.max_output_tokens).toBeLessThan(1000);
  });

  it('are refused before the call when the tenant has none left, and noted after it', async () => {
    bench.provider.reply({ text: 'ok', usage: { input: 20, output: 4 } });
    await bench.say({ maxOutputTokens: 500 });
    expect(bench.tokens.reserved[0]).toBeGreaterThan(500);
    expect(bench.tokens.spent).toMatchObject([{ inputTokens: 20, outputTokens: 4 }]);
    bench.tokens.isFull = true;
    const { status } = summaryOf(await bench.say());
    expect(status).toEqual({ state: FAILED, text: 'no room in tokensPerDay' });
    expect(bench.provider.requests).toHaveLength(1);
  });

  it.each([-5, 1.5, 1e300])('are estimated where a provider reports %d', async (output) => {
    bench.provider.reply({ text: 'a'.repeat(40), usage: { input: 20, output } });
    const { status } = summaryOf(await bench.say());
    expect(status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(bench.tokens.spent).toMatchObject([{ inputTokens: 20, outputTokens: 10 }]);
  });

  it('and times are in the metrics, by provider and model', async () => {
    bench.provider.reply({ status: 503 }, { text: 'ok', usage: { input: 20, output: 4 } });
    await bench.say({ model: 'openai/gpt-metrics' });
    const { body } = await bench.metrics.render();
    const label = 'provider="openai",model="gpt-metrics"';
    expect(body).toContain(`baton_model_tokens_total{${label},kind="input"} 20`);
    expect(body).toContain(`baton_model_retries_total{${label},reason="503"} 1`);
    expect(body).toContain(`baton_model_call_seconds_count{${label},outcome="ok"} 1`);
    expect(body).toContain(`baton_model_call_seconds_count{${label},outcome="503"} 1`);
    expect(body).toContain(`baton_model_first_word_seconds_count{${label}} 1`);
  });
});
