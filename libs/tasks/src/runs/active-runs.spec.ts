import { TaskState } from '@baton/a2a';
import type { LeaseKey, RunKey, TaskStore } from '@baton/database';
import { Logger, Metrics } from '@baton/telemetry';
import { ActiveRuns } from './active-runs.js';

const KEY: RunKey = { tenantId: 'tenant', taskId: 'task', runId: 'run', attempt: 1 };

/** The runs of a worker whose task is in this state, or cannot be read. */
function runs(state: TaskState | Error): ActiveRuns {
  const get = () =>
    state instanceof Error ? Promise.reject(state) : Promise.resolve({ task: { status: { state } } });
  const tasks: Pick<TaskStore, 'get'> = { get: get as never };
  const unused = undefined as never;
  return new ActiveRuns(tasks as TaskStore, unused, unused, unused, Logger.silent(), new Metrics());
}

describe('a worker whose heartbeat does not reach Postgres', () => {
  const outage = { type: 'failed', reason: 'no answer' } as const;
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('is reported at once, is cut off after ten seconds, and no longer when it is back', () => {
    const active = runs(TaskState.TASK_STATE_WORKING);
    const said: boolean[] = [];
    active.onPostgres = (isReached) => void said.push(isReached);
    const { cutOff } = active;
    active.onHeartbeat(outage);
    expect(said).toEqual([false]);
    jest.advanceTimersByTime(9_999);
    expect(cutOff.aborted).toBe(false);
    jest.advanceTimersByTime(1);
    expect(cutOff.aborted).toBe(true);
    active.onHeartbeat({ type: 'back' });
    expect(said).toEqual([false, true]);
    expect(active.cutOff.aborted).toBe(false);
  });

  it('is not cut off by a short outage, and is by a long one after it', () => {
    const active = runs(TaskState.TASK_STATE_WORKING);
    active.onHeartbeat(outage);
    jest.advanceTimersByTime(6_000);
    active.onHeartbeat({ type: 'back' });
    active.onHeartbeat(outage);
    jest.advanceTimersByTime(6_000);
    expect(active.cutOff.aborted).toBe(false);
    jest.advanceTimersByTime(4_000);
    expect(active.cutOff.aborted).toBe(true);
  });
});

describe('a run whose log refuses it', () => {
  it.each([
    ['canceled', TaskState.TASK_STATE_CANCELED],
    ['lease-lost', TaskState.TASK_STATE_WORKING],
    ['lease-lost', new Error('Postgres is away')],
  ])('is stopped as %s when its task is %p, and its runtime gets the reason', async (reason, state) => {
    const active = runs(state);
    const { signal } = active.hold(KEY);
    await active.stopRefused(KEY);
    expect(signal.reason).toBe(reason);
  });

  it('leaves a later attempt here alone', async () => {
    const active = runs(TaskState.TASK_STATE_WORKING);
    const { signal } = active.hold({ ...KEY, attempt: 2 });
    await active.stopRefused(KEY);
    expect(signal.aborted).toBe(false);
  });
});

describe('a run of this worker', () => {
  it('stays held when an earlier attempt of it ends here', () => {
    const active = runs(TaskState.TASK_STATE_WORKING);
    active.hold(KEY);
    const { signal } = active.hold({ ...KEY, attempt: 2 });
    active.release(KEY);
    expect(active.size).toBe(1);
    active.stopAll('shutdown');
    expect(signal.reason).toBe('shutdown');
    active.release({ ...KEY, attempt: 2 });
    expect(active.size).toBe(0);
  });

  it('has its lease extended from before its claim until the answer, and no longer', async () => {
    const active = runs(TaskState.TASK_STATE_WORKING);
    const steps: string[] = [];
    const note = (step: string) => (key: LeaseKey) => void steps.push(`${step} ${key.runId} ${key.attempt}`);
    // The thread of the real one needs Postgres.
    Object.assign(active, { leases: { hold: note('hold'), release: note('release') } });
    const claim = (answer: Promise<string>) =>
      active.whileClaiming('tenant', 'run', () => {
        steps.push('claim');
        return answer;
      });
    expect(await claim(Promise.resolve('claimed'))).toBe('claimed');
    await expect(claim(Promise.reject(new Error('away')))).rejects.toThrow('away');
    const each = ['hold run 0', 'claim', 'release run 0'];
    expect(steps).toEqual([...each, ...each]);
  });
});
