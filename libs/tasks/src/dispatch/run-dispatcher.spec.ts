import type { Environment } from '@baton/config';
import type { DispatchStore, Grant, RunStore, SlotUsage } from '@baton/database';
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
  const unused = {} as DispatchStore & RunStore & LimitsService & Environment;
  return {
    warned,
    dispatcher: new RunDispatcher(unused, unused, unused, { enqueueNewRuns } as Messaging, unused, logger),
  };
}

/** A dispatcher that reads this usage. It notes the grants of each refill, each of which dispatches as many runs as `dispatched` says. */
function refilling(usage: Partial<SlotUsage>, dispatched: number[]) {
  const grants: Grant[][] = [];
  let isRead = (): void => undefined;
  const store = {
    readSlotUsage: async () => ({ reservedSlots: 0, workers: [], inFlight: new Map(), ...usage }),
    dispatch: async (granted: Grant[]) => {
      grants.push(granted);
      const count = dispatched[grants.length - 1] ?? 0;
      return Array.from({ length: count }, (_, i) => job(`run ${String(i)}`));
    },
  } as unknown as DispatchStore;
  const messaging = { enqueueNewRuns: async () => isRead() } as unknown as Messaging;
  const environment = { leaseMs: 60_000, defaultLimits: { runsAtOnce: null } } as unknown as Environment;
  const logger = { warn: () => undefined, info: () => undefined } as unknown as Logger;
  const unused = {} as RunStore & LimitsService;
  const dispatcher = new RunDispatcher(store, unused, unused, messaging, environment, logger);
  /** Resolves when this many refills have ended. */
  const refill = async (count: number): Promise<void> => {
    let left = count;
    const done = new Promise<void>((resolve) => (isRead = () => void (--left === 0 && resolve())));
    dispatcher.refill();
    await done;
    dispatcher.onApplicationShutdown();
  };
  return { grants, refill };
}

describe('a refill', () => {
  const waiting = new Map([
    ['a', {}],
    ['b', {}],
  ]);

  it('is followed by another one if tenants had fewer waiting runs than they were granted', async () => {
    const { grants, refill } = refilling({ workerSlots: 4, waiting }, [1, 0]);
    await refill(2);
    expect(grants).toHaveLength(2);
  });

  it('is followed by none if each slot was used', async () => {
    const { grants, refill } = refilling({ workerSlots: 4, waiting }, [8]);
    await refill(1);
    expect(grants).toHaveLength(1);
  });

  it('gives a tenant without a run in flight one although no slot is free, as at acceptance', async () => {
    const inFlight = new Map([['b', 100]]);
    const { grants, refill } = refilling({ workerSlots: 4, waiting, inFlight }, [1]);
    await refill(1);
    expect(grants).toEqual([[{ tenantId: 'a', slots: 1, maxInFlight: null }]]);
  });
});

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
