import { structuredAnswer } from './structured-answer.js';

const read = (text: string): Promise<unknown> => structuredAnswer(text, async () => undefined);
const FENCE = '```';

describe('the JSON of an answer', () => {
  it.each([
    ['{"a":1}'],
    [' \n{"a":1}\n'],
    [`${FENCE}json\n{"a":1}\n${FENCE}`],
    [`${FENCE}\n{"a":1}${FENCE}`],
    [`${FENCE}json  \n\n{"a":1}\n\n${FENCE}\n`],
  ])('is read from %j', async (text) => {
    expect(await read(text)).toEqual({ value: { a: 1 } });
  });

  it.each([
    ['', 'it is empty'],
    [`${FENCE}json\n\n${FENCE}`, 'it is empty'],
    ['hello', 'it is not JSON'],
    [FENCE, 'it is not JSON'],
    [`${FENCE}${FENCE}`, 'it is not JSON'],
    [`${FENCE}yaml\na: 1\n${FENCE}`, 'it is not JSON'],
    ['['.repeat(300), 'it is nested deeper than 200 levels'],
    [`[${'1,'.repeat(200_000)}1]`, 'it has more than 100000 JSON values'],
  ])('is not there in %.20j', async (text, wrong) => {
    expect(await read(text)).toEqual({ wrong });
  });

  it.each([
    ['a fence and line ends without an end', FENCE + '\n'.repeat(100_000) + 'x'],
    ['a fence and spaces without an end', FENCE + ' '.repeat(1_000_000) + 'x'],
    ['a fence and line ends with an end', FENCE + '\n'.repeat(1_000_000) + 'x' + FENCE],
    ['fences', FENCE.repeat(300_000)],
    ['brackets', '['.repeat(5_000_000)],
  ])(
    'takes no longer for %s',
    async (_what, text) => {
      // A quadratic search would take minutes.
      expect(await read(text)).toHaveProperty('wrong');
    },
    30_000,
  );
});
