import { Steadiness } from './steadiness.js';

const LEASE = 3000;
const SWEEP = 500;

/** When leases may be taken, asked every 400 ms from 0 on; `asked` says how each question went. */
function steadyFrom(asked: (at: number) => 'fails' | 'answers', until: number, slowMs = 0): number[] {
  const steadiness = new Steadiness(LEASE, SWEEP);
  const steady: number[] = [];
  for (let at = 0; at <= until; at += 400 + slowMs) {
    steadiness[asked(at) === 'answers' ? 'answered' : 'failed'](at);
    if (steadiness.isSteady) steady.push(at);
  }
  return steady;
}

it('lets a process that has just started wait for half a lease', () => {
  expect(steadyFrom(() => 'answers', 2400)).toEqual([1600, 2000, 2400]);
});

it('waits for a whole lease after a failure', () => {
  const asked = (at: number) => (at >= 4000 && at < 14_000 ? 'fails' : 'answers');
  const steady = steadyFrom(asked, 18_000);
  expect(steady.filter((at) => at >= 4000)).toEqual([17_200, 17_600, 18_000]);
});

it('waits for a whole lease when it does not know what has been: it was stopped, or Postgres was slow', () => {
  const steadiness = new Steadiness(LEASE, SWEEP);
  for (let at = 0; at <= 4000; at += 400) steadiness.answered(at);
  expect(steadiness.isSteady).toBe(true);
  steadiness.answered(4000 + SWEEP + LEASE / 2);
  expect(steadiness.isSteady).toBe(true);
  steadiness.answered(9000);
  expect(steadiness.isSteady).toBe(false);
  for (let at = 9400; at < 12_000; at += 400) steadiness.answered(at);
  expect(steadiness.isSteady).toBe(false);
  steadiness.answered(12_000);
  expect(steadiness.isSteady).toBe(true);
});

it('does not wait for ever for a Postgres that stays slow', () => {
  const steady = steadyFrom(() => 'answers', 60_000, 2000);
  expect(steady[0]).toBeGreaterThanOrEqual(10 * LEASE);
});
