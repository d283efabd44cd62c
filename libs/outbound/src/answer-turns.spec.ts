import { AnswerTurns } from './answer-turns.js';

const work = (ms: number): void => {
  for (const end = performance.now() + ms; performance.now() < end;);
};

it('lets the event loop turn between long reads, and keeps their order', async () => {
  const turns = new AnswerTurns();
  const seen: string[] = [];
  await new Promise<void>((resolve) => {
    for (const name of ['a', 'b', 'c']) {
      turns.take(() => {
        work(2);
        seen.push(name);
        // Others who wait for the next turn of the event loop.
        setImmediate(() => seen.push('others'));
        if (name === 'c') setImmediate(resolve);
      });
    }
  });
  expect(seen).toEqual(['a', 'others', 'b', 'others', 'c', 'others']);
});

it('lets a read that waits go before the next one of another answer', async () => {
  const turns = new AnswerTurns();
  const seen: string[] = [];
  await new Promise<void>((resolve) => {
    turns.take(() => {
      work(2);
      seen.push('first');
      turns.take(() => {
        seen.push('first again');
        resolve();
      });
    });
    turns.take(() => seen.push('second'));
  });
  expect(seen).toEqual(['first', 'second', 'first again']);
});

/** Takes reads of 5 ms each, one when the one before is done or all at once. @returns how long they took, in ms */
async function timeOf(reads: number, inParallel: boolean): Promise<number> {
  const turns = new AnswerTurns();
  const beganAt = performance.now();
  const read = () =>
    new Promise<void>((resolve) => {
      turns.take(() => {
        work(5);
        resolve();
      });
    });
  if (inParallel) await Promise.all(Array.from({ length: reads }, read));
  else for (let i = 0; i < reads; i++) await read();
  return performance.now() - beganAt;
}

it.each([
  ['at once', true],
  ['one after the other', false],
])('gives a tenant a quarter of the time, after a burst, for reads that come %s', async (_, inParallel) => {
  const [burst, last] = [20, 5];
  expect(await timeOf(40, inParallel)).toBeGreaterThan(4 * (40 * 5 - burst - last));
});
