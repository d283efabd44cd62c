import { eventKindOf, TaskState } from '@baton/a2a';
import { MemoryJournal } from '../../../../../../test/support/agents/turns.js';
import type { AgentOutput } from '../../../agent-runtime.js';
import { LlmBench, summaryOf, toolOf } from '../llm-runtime.fixture.js';

const { TASK_STATE_COMPLETED: COMPLETED } = TaskState;

let bench: LlmBench;
beforeAll(async () => {
  bench = await LlmBench.start();
});
afterEach(() => bench.reset());
afterAll(() => bench.stop());

describe('a tool', () => {
  const weather = { name: 'weather', input: { city: 'Bern' } };

  it('runs beside the others of its step', async () => {
    let both = (): void => undefined;
    const met = new Promise<void>((resolve) => (both = resolve));
    bench.tools.push(
      toolOf('weather', () => met.then(() => 'a')),
      toolOf('news', () => {
        both();
        return 'b';
      }),
    );
    bench.provider.reply({ calls: [weather, { name: 'news', input: { city: 'Bern' } }] }, { text: 'ok' });
    const { artifacts } = summaryOf(await bench.say());
    expect(Object.keys(artifacts)).toEqual(['call-1-1', 'call-1-2', 'reply-2']);
  });

  it('is shown while it is made, and has its result before the others of its step', async () => {
    const waits: (() => void)[] = [];
    const ends = new Promise<void>((resolve) => waits.push(resolve));
    bench.tools.push(
      toolOf('weather', () => ends),
      toolOf('news', () => 'b'),
    );
    bench.provider.reply({ calls: [weather, { name: 'news', input: { city: 'Bern' } }] }, { text: 'ok' });
    const events: [string | undefined, string | undefined, unknown][] = [];
    const signal = new AbortController().signal;
    for await (const { $case, value } of bench.runtime.run(bench.turn(), signal)) {
      if ($case !== 'artifactUpdate' || !value.artifact) continue;
      const { artifactId, parts } = value.artifact;
      const data = parts[0]?.content?.$case === 'data' ? parts[0].content.value : undefined;
      events.push([artifactId, eventKindOf(value.artifact), data]);
      // The slow one continues when a caller has the result of the other.
      if (artifactId === 'call-1-2' && eventKindOf(value.artifact) === 'tool-call') waits[0]?.();
    }
    expect(events.slice(0, 4)).toEqual([
      ['call-1-1', 'tool-start', { tool: 'weather', input: weather.input }],
      ['call-1-2', 'tool-start', { tool: 'news', input: { city: 'Bern' } }],
      ['call-1-2', 'tool-call', { tool: 'news', ok: true, input: { city: 'Bern' }, output: 'b' }],
      ['call-1-1', 'tool-call', { tool: 'weather', ok: true, input: weather.input }],
    ]);
  });

  it('is not shown again by the next attempt', async () => {
    bench.tools.push(
      toolOf('weather', () => {
        throw new Error('the worker dies');
      }),
    );
    bench.provider.reply({ calls: [weather] });
    const journal = new MemoryJournal();
    const first: AgentOutput[] = [];
    const dies = async (): Promise<void> => {
      for await (const output of bench.runtime.run(bench.turn({}, { journal }), new AbortController().signal))
        first.push(output);
    };
    await expect(dies()).rejects.toThrow('the worker dies');
    const starts = first.flatMap((each) => (each.$case === 'artifactUpdate' ? each.value.artifact! : []));
    expect(starts.map(eventKindOf)).toEqual(['tool-start']);
    bench.tools[0] = toolOf('weather', () => 'clear');
    bench.provider.reply({ text: 'ok' });
    const turn = bench.turn({}, { journal, attempt: 2 });
    const outputs = await bench.run({ ...turn, task: { ...turn.task, artifacts: starts } });
    expect(
      outputs.flatMap((each) =>
        each.$case === 'artifactUpdate' ? eventKindOf(each.value.artifact!) : [],
      )[0],
    ).toBe('tool-call');
  });

  it.each([
    [
      'that there is not',
      { name: 'wether', input: {} },
      'There is no tool "wether". The tools are: weather.',
    ],
    [
      'with a wrong input',
      { name: 'weather', input: { city: 7 } },
      'The input of "weather" is not valid: /city',
    ],
  ])('%s is an error that the model can correct', async (_, call, error) => {
    let made = 0;
    bench.tools.push(toolOf('weather', () => (made += 1)));
    bench.provider.reply({ calls: [call] }, { text: 'sorry' });
    const { artifacts, status } = summaryOf(await bench.say());
    expect(artifacts['call-1-1']).toMatchObject({
      data: { ok: false, output: expect.stringContaining(error) },
    });
    expect(JSON.stringify((await bench.provider.request(2)).body)).toContain(
      error.replaceAll('"', '\\\\"').slice(0, 12),
    );
    expect(status).toEqual({ state: COMPLETED });
    expect(made).toBe(0);
  });

  it('gives callers the files that it has made, as artifacts of the reply', async () => {
    const base64 = Buffer.from('a,b').toString('base64');
    const files = [{ name: 'table.csv', mediaType: 'text/csv', base64 }];
    const execute = () => Promise.resolve({ ok: true, content: 'a file', files });
    bench.tools.push(toolOf('weather', () => '', { execute }));
    bench.provider.reply({ calls: [weather] }, { text: 'There you are.' });
    const chunks = (await bench.say()).flatMap(({ $case, value }) =>
      $case === 'artifactUpdate' && value.artifact ? [value.artifact] : [],
    );
    expect(chunks.find(({ artifactId }) => artifactId === 'call-1-1-file-1')).toMatchObject({
      name: 'table.csv',
      metadata: undefined,
      parts: [{ filename: 'table.csv', mediaType: 'text/csv', content: { value: Buffer.from('a,b') } }],
    });
    expect(JSON.stringify((await bench.provider.request(2)).body)).not.toContain(base64);
  });

  it('is called no more than the agent has steps for', async () => {
    bench.tools.push(toolOf('weather', () => 'again'));
    bench.provider.answer(() => ({ calls: [weather] }));
    const { status } = summaryOf(await bench.say({ steps: 3 }));
    expect(status?.text).toContain('had not answered after 3 steps');
    expect(bench.provider.requests).toHaveLength(3);
  });
});
