import { BatchIsolation } from './batch-isolation.js';

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] });
});
afterEach(() => {
  jest.useRealTimers();
});

describe('the isolation of batch keys', () => {
  it('isolates a key for ten seconds, and no other one', () => {
    const isolation = new BatchIsolation();
    isolation.isolate('a');
    expect([isolation.mayShare('a'), isolation.mayShare('b')]).toEqual([false, true]);
    jest.advanceTimersByTime(9_000);
    expect(isolation.mayShare('a')).toBe(false);
    jest.advanceTimersByTime(2_000);
    expect(isolation.mayShare('a')).toBe(true);
  });

  it('lets a suspect share again once it has succeeded alone', () => {
    const isolation = new BatchIsolation();
    const wasWritten = isolation.suspect('a');
    expect(isolation.mayShare('a')).toBe(false);
    wasWritten(true);
    expect(isolation.mayShare('a')).toBe(true);
  });

  it.each([
    ['fails alone as well', false, 0],
    ['is slow alone', true, 100],
  ])('isolates a suspect that %s', (_, succeeded, ms) => {
    const isolation = new BatchIsolation();
    const wasWritten = isolation.suspect('a');
    jest.advanceTimersByTime(ms);
    wasWritten(succeeded);
    expect(isolation.mayShare('a')).toBe(false);
    jest.advanceTimersByTime(9_000);
    expect(isolation.mayShare('a')).toBe(false);
  });

  it('does not clear an isolated key that becomes a suspect as well', () => {
    const isolation = new BatchIsolation();
    isolation.isolate('a');
    isolation.suspect('a')(true);
    expect(isolation.mayShare('a')).toBe(false);
  });

  it('does not clear a key that Postgres has named, however well it is written as a suspect', () => {
    const isolation = new BatchIsolation();
    const wasWritten = isolation.suspect('a');
    isolation.isolate('a');
    wasWritten(true);
    expect(isolation.mayShare('a')).toBe(false);
  });
});
