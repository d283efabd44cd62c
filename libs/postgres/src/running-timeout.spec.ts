import { runningTimeout } from './running-timeout.js';

describe('a limit of waiting', () => {
  let isOver = false;
  beforeEach(() => {
    jest.useFakeTimers();
    isOver = false;
  });
  afterEach(() => jest.useRealTimers());
  const limit = (ms: number): NodeJS.Timeout => runningTimeout(() => (isOver = true), ms);

  it('is over after its time, once', () => {
    limit(1_000);
    jest.advanceTimersByTime(999);
    expect(isOver).toBe(false);
    jest.advanceTimersByTime(1);
    expect(isOver).toBe(true);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('can be ended', () => {
    clearInterval(limit(1_000));
    jest.advanceTimersByTime(2_000);
    expect(isOver).toBe(false);
  });
});

it('is not over because the process stood still', async () => {
  let isOver = false;
  const timer = runningTimeout(() => (isOver = true), 1_000);
  // Blocks this process for longer than the limit.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_500);
  // All timers that are due fire before this.
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect(isOver).toBe(false);
  clearInterval(timer);
});
