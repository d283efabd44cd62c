import { TaskState } from '@baton/a2a';
import type { TaskStore, WokenTask } from '@baton/database';
import type { Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import type { SweepLeader } from '../core/sweep-leader.js';
import type { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { UnansweredTasks } from './unanswered-tasks.js';

const woken = (taskId: string, sequence: number, hasPushConfigs: boolean): WokenTask => ({
  tenantId: 'tenant',
  taskId,
  event: {
    sequence,
    payload: {
      $case: 'statusUpdate',
      value: {
        taskId,
        contextId: 'c',
        status: { state: TaskState.TASK_STATE_WORKING, message: undefined, timestamp: undefined },
        metadata: undefined,
      },
    },
  },
  hasPushConfigs,
});

/** One sweep that wakes these tasks. @returns what it has done */
async function sweep(tasks: WokenTask[], sent: Promise<void> = Promise.resolve()): Promise<string[]> {
  const trace: string[] = [];
  const messaging: Pick<Messaging, 'publishTask' | 'enqueuePushes'> = {
    publishTask: async (_, taskId, { lastSequence, events }) => {
      trace.push(`publish ${taskId} ${lastSequence} ${events.map(({ attempt }) => attempt).join()}`);
      await sent;
    },
    enqueuePushes: async (pushed) => {
      trace.push(`push ${pushed.map(({ taskId }) => taskId).join()}`);
      await sent;
    },
  };
  const sweeping = new UnansweredTasks(
    { wakeAsking: async () => tasks } as unknown as TaskStore,
    messaging as Messaging,
    { refill: () => void trace.push('refill') } as unknown as RunDispatcher,
    { on: () => undefined } as unknown as SweepLeader,
    Logger.silent(),
  );
  await sweeping.runOnce();
  return trace;
}

describe('a sweep of tasks whose question has expired', () => {
  it('starts the runs, publishes each event, and wakes the deliveries of those with push configs', async () => {
    expect(await sweep([woken('a', 4, false), woken('b', 7, true)])).toEqual([
      'refill',
      'publish a 4 0',
      'publish b 7 0',
      'push b',
    ]);
    expect(await sweep([woken('a', 4, false)])).toEqual(['refill', 'publish a 4 0']);
  });

  it('asks for no runs if it has woken none', async () => {
    expect(await sweep([])).toEqual([]);
  });

  it('ends while the queue is away: the log and the sweeps have what it could not send', async () => {
    const away = Promise.reject(new Error('away'));
    expect(await sweep([woken('b', 7, true)], away)).toEqual(['refill', 'publish b 7 0', 'push b']);
  });
});
