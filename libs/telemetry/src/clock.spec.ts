import { Clock, type ClockReading } from './clock.js';

const HOUR_MS = 3_600_000;

/** A reading of a Postgres whose clock differs from the true time by `aheadMs`, as the true machine makes it. */
const reading = (aheadMs = 0, answerMs = 2): ClockReading => {
  const sentAt = performance.now();
  return { serverMs: Date.now() + aheadMs + answerMs / 2, sentAt, receivedAt: sentAt + answerMs };
};

describe('the clock of a process', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  /** The clock of the machine is set, which does not change its monotonic clock. */
  const setBy = (ms: number): void => void jest.setSystemTime(Date.now() + ms);

  it('is that of the machine before Postgres has answered, and while both agree', () => {
    const clock = new Clock();
    expect(clock.now()).toBe(Date.now());
    clock.adjust(reading(400));
    expect(clock.now()).toBe(Date.now());
    expect(clock.date()).toEqual(new Date());
  });

  it.each([2 * HOUR_MS, -2 * HOUR_MS])('is that of Postgres if the machine is off by %d ms', (offMs) => {
    const clock = new Clock();
    const truth = Date.now();
    clock.adjust(reading(-offMs));
    expect(clock.now() - (truth - offMs)).toBeCloseTo(0, -1);
    expect(clock.offsetMs / 1000).toBeCloseTo(offMs / 1000, 1);
    jest.advanceTimersByTime(5_000);
    expect(clock.now() - (truth - offMs + 5_000)).toBeCloseTo(0, -1);
  });

  it.each([2 * HOUR_MS, -2 * HOUR_MS])(
    'goes on when the clock of the machine jumps by %d ms, and when it is set right',
    (jumpMs) => {
      const clock = new Clock();
      clock.adjust(reading());
      const before = Date.now();
      setBy(jumpMs);
      jest.advanceTimersByTime(1_000);
      expect(clock.now() - (before + 1_000)).toBeCloseTo(0, -1);
      expect(Math.round(clock.offsetMs / 1000)).toBe(jumpMs / 1000);
      setBy(-jumpMs);
      expect(clock.now()).toBe(Date.now());
      expect(clock.offsetMs).toBe(0);
    },
  );

  it('does not take a slow answer for a difference', () => {
    const clock = new Clock();
    clock.adjust(reading(8_000, 20_000));
    expect(clock.offsetMs).toBe(0);
    clock.adjust(reading(0, 2));
    expect(clock.now()).toBe(Date.now());
    // The process was stopped before it read the answer.
    clock.adjust({ ...reading(), receivedAt: performance.now() + 30_000 });
    expect([clock.now(), clock.offsetMs]).toEqual([Date.now(), 0]);
  });

  it('follows a Postgres whose clock is set', () => {
    const clock = new Clock();
    clock.adjust(reading());
    clock.adjust(reading(HOUR_MS));
    expect(clock.now() - (Date.now() + HOUR_MS)).toBeCloseTo(0, -1);
  });
});
