import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../../../../test/support/until.js';
import { RepeatedWork } from './repeated-work.js';

interface HeldRun {
  resolve: () => void;
  reject: (reason: Error) => void;
}

/** Work whose runs a test ends. */
class HeldWork extends RepeatedWork {
  readonly ends: HeldRun[] = [];

  constructor(
    everyMs?: number,
    readonly logged: string[] = [],
  ) {
    const log = (text: string): void => void logged.push(text);
    super({ ...(everyMs && { everyMs }), log: { name: 'The work', logger: { warn: log, info: log } } });
  }

  runOnce(): Promise<void> {
    return new Promise((resolve, reject) => this.ends.push({ resolve, reject }));
  }

  override wake(): void {
    super.wake();
  }

  async untilRun(count: number): Promise<void> {
    await until(() => this.ends.length >= count);
  }
}

describe('repeated work', () => {
  let work: HeldWork;
  beforeEach(() => {
    work = new HeldWork(10);
    work.onApplicationBootstrap();
  });

  it('begins no run before the one before it has ended', async () => {
    await work.untilRun(1);
    await delay(50);
    expect(work.ends).toHaveLength(1);
    work.ends[0]!.resolve();
    await work.untilRun(2);
    work.ends[1]!.resolve();
    await work.onModuleDestroy();
  });

  it('pauses for as long as a run took to fail: the server may be slow', async () => {
    await work.untilRun(1);
    const begun = performance.now();
    await delay(300);
    const failed = performance.now();
    work.ends[0]!.reject(new Error('no answer'));
    await work.untilRun(2);
    // Timers may be a little early.
    expect(performance.now() - failed).toBeGreaterThan(failed - begun - 20);
    work.ends[1]!.resolve();
    await work.onModuleDestroy();
  });

  it('goes on after a run that failed, and logs the failure and its end', async () => {
    await work.untilRun(1);
    work.ends[0]!.reject(new Error('broken'));
    await work.untilRun(2);
    work.ends[1]!.resolve();
    await work.untilRun(3);
    expect(work.logged).toEqual(['The work fails', 'The work works again']);
    work.ends[2]!.resolve();
    await work.onModuleDestroy();
  });

  it('stops when its current run has ended, and begins no other', async () => {
    await work.untilRun(1);
    let isStopped = false;
    const stopped = work.onModuleDestroy().then(() => (isStopped = true));
    await delay(20);
    expect(isStopped).toBe(false);
    work.ends[0]!.resolve();
    await stopped;
    await delay(30);
    expect(work.ends).toHaveLength(1);
  });
});

describe('work without an interval', () => {
  it('runs when it is woken, once at a time, and not after the shutdown', async () => {
    const work = new HeldWork();
    work.onApplicationBootstrap();
    await delay(30);
    expect(work.ends).toHaveLength(0);
    work.wake();
    work.wake();
    expect(work.ends).toHaveLength(1);
    work.ends[0]!.resolve();
    await delay(30);
    expect(work.ends).toHaveLength(1);
    work.wake();
    expect(work.ends).toHaveLength(2);
    work.ends[1]!.resolve();
    await work.onModuleDestroy();
    work.wake();
    expect(work.ends).toHaveLength(2);
  });
});
