import { type CallContext, SPEC_RULES, type TaskEvent, TaskState } from '@baton/a2a';
import type { Relay } from '../relay/relay.js';
import type { TaskWatch } from '../relay/task-watch.js';
import { SubscribeOperation } from './subscribe-operation.js';
import type { TaskFinder } from './task-finder.js';

const { TASK_STATE_WORKING, TASK_STATE_COMPLETED } = TaskState;
const HEAD = 5;

const statusEvent = (sequence: number, state: TaskState): TaskEvent => ({
  sequence,
  attempt: 1,
  payload: {
    $case: 'statusUpdate',
    value: {
      taskId: 'task',
      contextId: 'context',
      status: { state, message: undefined, timestamp: undefined },
      metadata: undefined,
    },
  },
});

/** A task in this state whose log ends at `HEAD`. The relay has an event for each sequence after the cursor of a watch. */
function subscriptionTo(state: TaskState, call: Partial<CallContext>) {
  const watched: { after: number; head: number; refreshed: boolean }[] = [];
  const finder: Pick<TaskFinder, 'find'> & { follow: unknown } = {
    find: async () =>
      ({
        sequence: HEAD,
        task: { id: 'task', contextId: 'context', status: { state }, artifacts: [], history: [] },
      }) as never,
    async *follow(_call: unknown, _id: unknown, { sequence }: TaskWatch) {
      for (let next = sequence + 1; next <= HEAD + 1; next += 1) {
        yield [statusEvent(next, next > HEAD ? TASK_STATE_COMPLETED : TASK_STATE_WORKING)];
      }
    },
  };
  const relay: Pick<Relay, 'watch'> = {
    watch: async (_key, after, head) => {
      const watch = { after, head, refreshed: false };
      watched.push(watch);
      return { sequence: after, refresh: () => (watch.refreshed = true) } as unknown as TaskWatch;
    },
  };
  const operation = new SubscribeOperation(finder as TaskFinder, relay as Relay);
  const context = {
    tenantId: 'tenant',
    principal: { kind: 'token', key: 'token:1' },
    version: '1.0',
    rules: SPEC_RULES,
    ...call,
  } as CallContext;
  const read = async (): Promise<string[]> => {
    const seen: string[] = [];
    const items = operation.subscribeToTask(
      context,
      { tenant: '', id: 'task' },
      new AbortController().signal,
    );
    for await (const batch of items) {
      for (const { sequence, payload } of batch) seen.push(`${payload.$case} ${sequence}`);
    }
    return seen;
  };
  return { read, watched };
}

describe('a subscription with Last-Event-ID', () => {
  it('has exactly the events after it, and no snapshot', async () => {
    const { read, watched } = subscriptionTo(TASK_STATE_WORKING, { lastEventId: 3 });
    expect(await read()).toEqual(['statusUpdate 4', 'statusUpdate 5', 'statusUpdate 6']);
    expect(watched).toMatchObject([{ after: 3, head: HEAD }]);
  });

  it('from 0 has the whole log', async () => {
    const { read } = subscriptionTo(TASK_STATE_WORKING, { lastEventId: 0 });
    expect(await read()).toHaveLength(HEAD + 1);
  });

  it('has the rest of a task that has ended meanwhile, and nothing if it has the end', async () => {
    const behind = subscriptionTo(TASK_STATE_COMPLETED, { lastEventId: 4 });
    expect(await behind.read()).toContain('statusUpdate 5');
    const atTheEnd = subscriptionTo(TASK_STATE_COMPLETED, { lastEventId: HEAD });
    expect([await atTheEnd.read(), atTheEnd.watched]).toEqual([[], []]);
  });

  it('is refused beyond the newest event', async () => {
    const { read, watched } = subscriptionTo(TASK_STATE_WORKING, { lastEventId: HEAD + 1 });
    await expect(read()).rejects.toThrow('Last-Event-ID');
    expect(watched).toEqual([]);
  });
});

describe('a subscription without Last-Event-ID', () => {
  it('begins with a snapshot, and has only later events', async () => {
    const { read, watched } = subscriptionTo(TASK_STATE_WORKING, {});
    expect(await read()).toEqual([`task ${HEAD}`, 'statusUpdate 6']);
    // Events between the snapshot and the subscription are only in the log.
    expect(watched).toEqual([{ after: HEAD, head: HEAD, refreshed: true }]);
  });

  it('to a task that has ended is refused by 1.0, and has the final status in 0.3', async () => {
    await expect(subscriptionTo(TASK_STATE_COMPLETED, {}).read()).rejects.toThrow('The task has ended');
    expect(await subscriptionTo(TASK_STATE_COMPLETED, { version: '0.3' }).read()).toEqual([
      `statusUpdate ${HEAD}`,
    ]);
  });
});
