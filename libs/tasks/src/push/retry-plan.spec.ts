import { retryAfterMs, retryPause } from './retry-plan.js';

const PAUSES = { firstMs: 1_000, maxMs: 60_000 };
const [least, half, most] = [() => 0, () => 0.5, () => 0.999_999];

describe('the pause after a failed delivery', () => {
  it('is random, up to a bound that doubles with each failure', () => {
    expect([1, 2, 3, 4].map((failures) => retryPause(failures, PAUSES, 0, most))).toEqual([
      1_000, 2_000, 4_000, 8_000,
    ]);
    expect([1, 2, 3, 4].map((failures) => retryPause(failures, PAUSES, 0, half))).toEqual([
      500, 1_000, 2_000, 4_000,
    ]);
  });

  it('has a maximum, however often a delivery fails, and a minimum', () => {
    for (const failures of [7, 60, 5_000]) expect(retryPause(failures, PAUSES, 0, most)).toBe(60_000);
    expect(retryPause(1, PAUSES, 0, least)).toBe(100);
  });

  it('is not shorter than the receiver asks for, up to the maximum', () => {
    expect(retryPause(1, PAUSES, 20_000, least)).toBe(20_000);
    expect(retryPause(1, PAUSES, 20_000, half)).toBe(20_500);
    expect(retryPause(6, PAUSES, 20_000, most)).toBe(32_000);
    expect(retryPause(1, PAUSES, 86_400_000, half)).toBe(60_000);
  });
});

describe('Retry-After', () => {
  const now = Date.parse('2026-11-22T10:00:00Z');

  it.each([
    ['120', 120_000],
    [' 5 ', 5_000],
    ['0', 0],
    ['Sun, 22 Nov 2026 10:01:00 GMT', 60_000],
    ['Sun, 22 Nov 2026 09:00:00 GMT', 0],
  ])('%j is %d ms', (header, ms) => {
    expect(retryAfterMs(header, now)).toBe(ms);
  });

  it.each([null, '', '-5', '1.5', 'soon', '1e9', '99999999999', '2026-11-22', `Sun, ${'9'.repeat(99)} GMT`])(
    '%j is none',
    (header) => {
      expect(retryAfterMs(header, now)).toBe(0);
    },
  );
});
