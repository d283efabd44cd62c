import { FineBodies } from './fine-bodies.js';

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
