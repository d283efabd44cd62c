import { LlmBench, summaryOf, toolOf } from './llm-runtime.fixture.js';

let bench: LlmBench;
beforeAll(async () => {
  bench = await LlmBench.start();
});
afterEach(() => bench.reset());
afterAll(() => bench.stop());

const MODEL = { model: 'anthropic/claude-sonnet-4-5', prompt: 'Be brief.' };
const MARK = { type: 'ephemeral' };
const weather = { name: 'weather', input: { city: 'Bern' } };

interface Marked {
  cache_control?: object;
}

interface RequestBody {
  system?: Marked[];
  tools?: Marked[];
  messages: { content?: Marked[] }[];
}

/** Where a request has marks: `system`, `tools`, and the numbers of messages. */
async function marksOf(number: number): Promise<unknown[]> {
  const { system, tools, messages } = (await bench.provider.request(number)).body as RequestBody;
  const isMarked = ({ cache_control: mark }: Marked): boolean =>
    JSON.stringify(mark) === JSON.stringify(MARK);
  return [
    ...(system?.some(isMarked) ? ['system'] : []),
    ...(tools?.some(isMarked) ? ['tools'] : []),
    ...messages.flatMap(({ content = [] }, i) => (content.some(isMarked) ? [i] : [])),
  ];
}

describe('requests to Anthropic', () => {
  it('mark the instructions, the tools, and the conversation up to this request and the one before', async () => {
    bench.tools.push(toolOf('weather', () => 'sun'));
    bench.provider.reply({ calls: [weather] }, { calls: [weather] }, { text: 'sunny', usage: USAGE });
    const { usage } = summaryOf(await bench.say(MODEL));
    expect(await marksOf(1)).toEqual(['system', 'tools', 0]);
    expect(await marksOf(2)).toEqual(['system', 'tools', 0, 2]);
    expect(await marksOf(3)).toEqual(['system', 'tools', 2, 4]);
    // What comes from the cache is counted and priced.
    expect(usage).toMatchObject({ inputTokens: 10 + 10 + 107, cachedInputTokens: 90, cacheWriteTokens: 7 });
    expect(bench.tokens.spent.at(-1)).toMatchObject({
      inputTokens: 107,
      cachedInputTokens: 90,
      cacheWriteTokens: 7,
    });
  });

  it('mark only the instructions if nothing will follow, and nothing with promptCache: off', async () => {
    bench.provider.reply({ text: 'ok' }, { text: 'ok' });
    await bench.say(MODEL);
    await bench.say({ ...MODEL, promptCache: 'off' });
    expect(await marksOf(1)).toEqual(['system']);
    expect(await marksOf(2)).toEqual([]);
  });
});

/** Anthropic counts apart what comes from its cache and what it writes there. */
const USAGE = { input: 10, output: 5, cached: 90, written: 7 };
