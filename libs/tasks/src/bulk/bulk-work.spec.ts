import { ProtocolError, Role, type Scope, TaskState } from '@baton/a2a';
import type { BulkProgress, BulkStore, ClaimedBulk, StoredTask } from '@baton/database';
import { Logger } from '@baton/telemetry';
import type { SweepLeader } from '../core/sweep-leader.js';
import { newTask } from '../turns/new-task.js';
import { BulkWork } from './bulk-work.js';
import type { MatchingTasks } from './matching-tasks.js';
import type { TaskActions } from './task-actions.js';

const OPERATION: ClaimedBulk = {
  tenantId: 't',
  id: 'o',
  action: 'send-again',
  filter: {},
  caller: { principal: { kind: 'token', key: 'token:1' }, scopes: ['admin'] as Scope[] },
  actor: { kind: 'token', key: 'token:1' },
  state: 'running',
  cursor: null,
  isListed: false,
  pending: [],
  found: 0,
  done: 0,
  skipped: 0,
  failed: 0,
  failures: [],
  waitsFor: null,
  claim: 1,
  createdAt: new Date(0),
  finishedAt: null,
};

type Saved = BulkProgress & { dueInMs: number; isOver: boolean };

/** One run of the work at an operation. @returns what it has stored, in order */
async function work(
  operation: ClaimedBulk,
  act: (taskId: string) => unknown,
  state?: string,
): Promise<Saved[]> {
  const saved: Saved[] = [];
  const claims = [[operation], []];
  const store = {
    claimDue: () => Promise.resolve(claims.shift()),
    save: (_: unknown, progress: BulkProgress, next: object) => {
      saved.push({ ...progress, ...next } as Saved);
      return Promise.resolve(state);
    },
  };
  const matching = {
    find: () => Promise.resolve({ tasks: ['a', 'b', 'c'].map(storedTask), searched: 3, next: null }),
  };
  const actions = { perform: async (_: unknown, taskId: string) => act(taskId) };
  const bulk = new BulkWork(
    store as unknown as BulkStore,
    matching as unknown as MatchingTasks,
    actions as unknown as TaskActions,
    { on: () => undefined } as unknown as SweepLeader,
    Logger.silent(),
  );
  await bulk.runOnce();
  return saved;
}

const storedTask = (id: string): StoredTask =>
  ({
    task: newTask({ messageId: '', role: Role.ROLE_USER, parts: [] } as never, { id }),
    state: TaskState.TASK_STATE_COMPLETED,
  }) as unknown as StoredTask;

const noRoom = () => ProtocolError.limitExceeded('tasksWaiting', 1, 1, 'wait');

describe('the work at many tasks', () => {
  it('stores the tasks of a page before it works at them, and then what came of each', async () => {
    const saved = await work(
      OPERATION,
      (id) => {
        if (id === 'b') return 'skipped';
        if (id === 'c') throw new ProtocolError('unsupported-operation', 'it is too large');
        return 'done';
      },
      'running',
    );
    expect(saved).toMatchObject([
      { pending: ['a', 'b', 'c'], found: 3, done: 0, isListed: true, isOver: false },
      { pending: [], found: 3, done: 1, skipped: 1, failed: 1, isOver: true },
    ]);
    expect(saved[1]!.failures).toEqual([{ taskId: 'c', reason: 'it is too large' }]);
  });

  it('waits with the rest while the quota of the tenant has no room', async () => {
    const act = (id: string) => {
      if (id === 'b') throw noRoom();
      return 'done';
    };
    const [, last] = await work(OPERATION, act, 'running');
    expect(last).toMatchObject({
      pending: ['b', 'c'],
      done: 1,
      failed: 0,
      isOver: false,
      waitsFor: noRoom().message,
    });
    expect(last!.dueInMs).toBeGreaterThan(0);
  });

  it('works at the stored tasks of a dead worker, and at none of an operation that is canceled or has another worker', async () => {
    const done: string[] = [];
    const note = (id: string) => (done.push(id), 'done');
    await work({ ...OPERATION, pending: ['x'], isListed: true }, note, 'running');
    expect(done).toEqual(['x']);
    await work(OPERATION, note, 'canceled');
    await work(OPERATION, note, undefined);
    expect(done).toEqual(['x']);
  });

  it('counts every failure, and names the first hundred', async () => {
    const failures = Array.from({ length: 99 }, (_, i) => ({ taskId: `t${i}`, reason: 'it is too large' }));
    const act = () => {
      throw new ProtocolError('unsupported-operation', 'it is too large');
    };
    const before = { ...OPERATION, pending: ['x', 'y'], isListed: true, failed: 99, failures };
    const [saved] = await work(before, act, 'running');
    expect(saved?.failed).toBe(101);
    expect(saved?.failures.slice(98).map(({ taskId }) => taskId)).toEqual(['t98', 'x']);
  });

  it('counts nothing while Postgres is away: the tasks stay, and are worked at again', async () => {
    const away = Object.assign(new Error('gone'), { code: 'ECONNRESET' });
    const act = () => {
      throw away;
    };
    await expect(work({ ...OPERATION, pending: ['x'], isListed: true }, act, 'running')).rejects.toBe(away);
  });
});
