import { FineBodies, SMALL_CHUNKS_A_MS } from './fine-bodies.js';

it('bodies in small chunks have a bound for each holder and for all', () => {
  const bodies = new FineBodies();
  const ends: (() => void)[] = [];
  const begin = (holder: string, count: number): number => {
    const begun = Array.from({ length: count }, () => bodies.begin(holder)).filter(
      (end) => end !== undefined,
    );
    ends.push(...begun);
    return begun.length;
  };
  expect(begin('busy', 60)).toBe(8);
  expect(['a', 'b', 'c', 'd'].map((holder) => begin(holder, 60))).toEqual([8, 8, 8, 0]);
  ends[0]?.();
  expect([begin('d', 60), begin('busy', 60)]).toEqual([1, 0]);
});

it('bodies that rest take turns, each once the chunks of the one before are paid', () => {
  jest.useFakeTimers();
  const bodies = new FineBodies();
  const turns: string[] = [];
  const rest = (name: string, ms: number) =>
    bodies.rest(() => {
      turns.push(`${name} at ${String(performance.now() - beganAt)}`);
      return ms * SMALL_CHUNKS_A_MS;
    });
  const beganAt = performance.now();
  rest('a', 100);
  rest('b', 20);
  rest('c', 0);
  expect(turns).toEqual([]);
  jest.advanceTimersByTime(1_000);
  rest('d', 0);
  jest.advanceTimersByTime(10);
  expect(turns).toEqual(['a at 0', 'b at 100', 'c at 120', 'd at 1000']);
  jest.useRealTimers();
});
