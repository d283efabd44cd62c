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
