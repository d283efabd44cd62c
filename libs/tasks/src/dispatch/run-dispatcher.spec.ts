import type { Environment } from '@baton/config';
import type { DispatchStore, RunStore } from '@baton/database';
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
