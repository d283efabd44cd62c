import { GroupedReads } from './grouped-reads.js';

let asked: string[][];
let answers: (() => void)[];
let refuse: Set<string>;
let reads: GroupedReads<string>;

beforeEach(() => {
  [asked, answers, refuse] = [[], [], new Set()];
  reads = new GroupedReads(async (keys) => {
    asked.push([...keys]);
    await new Promise<void>((resolve) => answers.push(resolve));
    if (keys.some((key) => refuse.has(key))) throw new Error('away');
    return new Map(keys.filter((key) => key !== 'none').map((key) => [key, `${key}!`]));
  });
});

const answered = async (count: number): Promise<void> => {
  while (answers.length < count) await Promise.resolve();
  answers[count - 1]!();
};

it('reads what is asked for at once in one read, and what is asked for meanwhile in the next one', async () => {
  const first = [reads.read('a'), reads.read('b'), reads.read('none'), reads.read('a')];
  while (answers.length === 0) await Promise.resolve();
  const second = [reads.read('a'), reads.read('c')];
  await answered(1);
  expect(await Promise.all(first)).toEqual(['a!', 'b!', undefined, 'a!']);
  await answered(2);
  expect(await Promise.all(second)).toEqual(['a!', 'c!']);
  expect(asked).toEqual([
    ['a', 'b', 'none'],
    ['a', 'c'],
  ]);
});

it('continues after a read that failed: only its own callers get the error', async () => {
  refuse.add('a');
  const failed = expect(reads.read('a')).rejects.toThrow('away');
  while (answers.length === 0) await Promise.resolve();
  const next = reads.read('b');
  await answered(1);
  await failed;
  await answered(2);
  expect(await next).toBe('b!');
});

it('reads at most 500 keys at once', async () => {
  const all = Array.from({ length: 501 }, (_, i) => reads.read(`k${i}`));
  await answered(1);
  await answered(2);
  expect(await Promise.all(all)).toContain('k500!');
  expect(asked.map(({ length }) => length)).toEqual([500, 1]);
});
