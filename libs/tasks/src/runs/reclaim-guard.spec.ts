import { ReclaimGuard } from './reclaim-guard.js';

const LEASE = 3000;
const SWEEP = 500;

/** When leases may be taken, asked every 400 ms from 0 on; `asked` says how each question went. */
function reclaimsFrom(asked: (at: number) => 'fails' | 'answers', until: number, slowMs = 0): number[] {
  const reclaimGuard = new ReclaimGuard(LEASE, SWEEP);
  const allowed: number[] = [];
  for (let at = 0; at <= until; at += 400 + slowMs) {
    reclaimGuard[asked(at) === 'answers' ? 'answered' : 'failed'](at);
    if (reclaimGuard.mayReclaim) allowed.push(at);
  }
  return allowed;
}

it('lets a process that has just started wait for half a lease', () => {
  expect(reclaimsFrom(() => 'answers', 2400)).toEqual([1600, 2000, 2400]);
});

it('waits for a whole lease after a failure', () => {
  const asked = (at: number) => (at >= 4000 && at < 14_000 ? 'fails' : 'answers');
  const allowed = reclaimsFrom(asked, 18_000);
  expect(allowed.filter((at) => at >= 4000)).toEqual([17_200, 17_600, 18_000]);
});

it('waits for a whole lease after an unknown time: it was stopped, or Postgres was slow', () => {
  const reclaimGuard = new ReclaimGuard(LEASE, SWEEP);
  for (let at = 0; at <= 4000; at += 400) reclaimGuard.answered(at);
  expect(reclaimGuard.mayReclaim).toBe(true);
  reclaimGuard.answered(4000 + SWEEP + LEASE / 2);
  expect(reclaimGuard.mayReclaim).toBe(true);
  reclaimGuard.answered(9000);
  expect(reclaimGuard.mayReclaim).toBe(false);
  for (let at = 9400; at < 12_000; at += 400) reclaimGuard.answered(at);
  expect(reclaimGuard.mayReclaim).toBe(false);
  reclaimGuard.answered(12_000);
  expect(reclaimGuard.mayReclaim).toBe(true);
});

it('does not wait for ever for a Postgres that stays slow', () => {
  const allowed = reclaimsFrom(() => 'answers', 60_000, 2000);
  expect(allowed[0]).toBeGreaterThanOrEqual(10 * LEASE);
});
