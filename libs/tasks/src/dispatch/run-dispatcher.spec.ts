import type { Environment } from '@baton/config';
import type { DispatchStore } from '@baton/database';
import type { LimitsService } from '@baton/identity';
import type { Messaging, RunJob } from '@baton/messaging';
import type { Logger } from '@baton/telemetry';
import { RunDispatcher } from './run-dispatcher.js';

const job = (runId: string): RunJob => ({
  tenantId: 'tenant',
  taskId: `task of ${runId}`,
  runId,
  attempt: 0,
});

/** A dispatcher with a queue that the test sees. */
function dispatcherOn(enqueueNewRuns: Messaging['enqueueNewRuns']) {
  const warned: unknown[] = [];
  const logger = { warn: (...said: unknown[]) => warned.push(said) } as unknown as Logger;
  const unused = {} as DispatchStore & LimitsService & Environment;
  return {
    warned,
    dispatcher: new RunDispatcher(unused, unused, { enqueueNewRuns } as Messaging, unused, logger),
  };
}

describe('new runs with a slot', () => {
  it('go on the queue together if they were accepted together', async () => {
    const calls: string[][] = [];
    const { dispatcher } = dispatcherOn(async (jobs) => void calls.push(jobs.map(({ runId }) => runId)));
    await Promise.all(['a', 'b', 'c'].map((runId) => dispatcher.enqueue(job(runId), true)));
    await dispatcher.enqueue(job('d'), true);
    expect(calls).toEqual([['a', 'b', 'c'], ['d']]);
  });

  it('are left to the sweeper while the queue is away, and asked for once', async () => {
    let calls = 0;
    const { dispatcher, warned } = dispatcherOn(async () => {
      calls += 1;
      throw new Error('no queue');
    });
    await Promise.all(['a', 'b'].map((runId) => dispatcher.enqueue(job(runId), true)));
    expect([calls, warned.length]).toEqual([1, 2]);
  });
});

describe('a run ahead of its commit', () => {
  const usage = { workerSlots: 4, claimsAhead: true, inFlight: new Map(), waiting: new Map() };

  /** A dispatcher that has read how the workers are. */
  async function informed(claimsAhead: boolean, enqueueNewRuns: Messaging['enqueueNewRuns']) {
    let isRead!: () => void;
    const read = new Promise<void>((resolve) => (isRead = resolve));
    const store = { readSlotUsage: async () => ({ ...usage, claimsAhead }) } as unknown as DispatchStore;
    const environment = { leaseMs: 1_000, defaultLimits: {} } as Environment;
    // The refill that has read it puts no run on the queue, and ends.
    const messaging = {
      enqueueNewRuns: async (jobs: readonly RunJob[]) =>
        jobs.length === 0 ? isRead() : enqueueNewRuns(jobs),
    };
    const dispatcher = new RunDispatcher(store, {} as LimitsService, messaging as Messaging, environment, {
      warn: () => undefined,
    } as unknown as Logger);
    dispatcher.refill();
    await read;
    return dispatcher;
  }

  it('goes on the queue, and its job says so', async () => {
    const jobs: RunJob[] = [];
    const dispatcher = await informed(true, async (added) => void jobs.push(...added));
    expect(await dispatcher.enqueueAhead(job('a'))).toBe(true);
    expect(jobs).toEqual([{ ...job('a'), isAhead: true }]);
  });

  it('does not while a worker would drop its job, or nobody knows', async () => {
    const jobs: RunJob[] = [];
    const enqueue: Messaging['enqueueNewRuns'] = async (added) => void jobs.push(...added);
    expect(await (await informed(false, enqueue)).enqueueAhead(job('a'))).toBe(false);
    expect(await dispatcherOn(enqueue).dispatcher.enqueueAhead(job('a'))).toBe(false);
    expect(jobs).toEqual([]);
  });

  it('does not while the queue is away', async () => {
    const dispatcher = await informed(true, async () => {
      throw new Error('no queue');
    });
    expect(await dispatcher.enqueueAhead(job('a'))).toBe(false);
  });
});
