import { type StreamItem, type Task, TaskState } from '@baton/a2a';
import { changesOf, type FollowedTask, type LentTask } from './task-changes.js';

const { TASK_STATE_WORKING, TASK_STATE_COMPLETED } = TaskState;

/** A task whose events come when the test says so. */
class Followed implements FollowedTask {
  reads = 0;
  /** Reads whose memory was given back. */
  given = 0;
  state = TASK_STATE_WORKING;
  /** The arrays of events. */
  readonly yielded: StreamItem[][] = [];
  private say: (item: StreamItem) => void = () => undefined;

  constructor(private readonly id: string) {}

  read = async (): Promise<LentTask> => {
    this.reads += 1;
    return { task: this.task(), giveBack: () => void (this.given += 1) };
  };

  items = async function* (this: Followed): AsyncGenerator<StreamItem[]> {
    for (;;) {
      const events = [await new Promise<StreamItem>((resolve) => (this.say = resolve))];
      this.yielded.push(events);
      yield events;
    }
  }.bind(this);

  /** Its status changes. */
  become(state: TaskState): void {
    this.state = state;
    this.say({ sequence: 1, payload: { $case: 'task', value: this.task() } });
  }

  private task(): Task {
    const status = { state: this.state, timestamp: undefined, message: undefined };
    return { id: this.id, contextId: 'c', status, artifacts: [], history: [], metadata: undefined };
  }
}

const stateOf = ({ value }: IteratorResult<StreamItem[]>): unknown[] =>
  ((value ?? []) as StreamItem[]).map(({ payload }) =>
    payload.$case === 'task' ? [payload.value.id, payload.value.status?.state] : [],
  );

describe('the changes of tasks', () => {
  it('are read one at a time, as the reader takes them', async () => {
    const [one, two] = [new Followed('one'), new Followed('two')];
    const changes = changesOf([one, two], new AbortController().signal);
    expect(stateOf(await changes.next())).toEqual([['one', TASK_STATE_WORKING]]);
    expect([one.reads, two.reads]).toEqual([1, 0]);
    two.become(TASK_STATE_COMPLETED);
    one.become(TASK_STATE_COMPLETED);
    const others = [stateOf(await changes.next()), stateOf(await changes.next())];
    expect(others).toEqual([[['two', TASK_STATE_COMPLETED]], [['one', TASK_STATE_COMPLETED]]]);
    expect((await changes.next()).done).toBe(true);
  });

  it('hold the memory of a task until the reader has taken it, or has left', async () => {
    const [one, two] = [new Followed('one'), new Followed('two')];
    const changes = changesOf([one, two], new AbortController().signal);
    await changes.next();
    expect([one.given, two.given]).toEqual([0, 0]);
    await changes.next();
    expect([one.given, two.given]).toEqual([1, 0]);
    await changes.return(undefined);
    expect([one.given, two.given]).toEqual([1, 1]);
  });

  it('hold no memory of a task whose status was shown', async () => {
    const one = new Followed('one');
    const changes = changesOf([one], new AbortController().signal);
    await changes.next();
    const next = changes.next();
    one.become(TASK_STATE_WORKING);
    while (one.reads < 2) await new Promise(setImmediate);
    one.become(TASK_STATE_COMPLETED);
    await next;
    expect([one.reads, one.given]).toEqual([3, 2]);
  });

  it('keep no event that they have read', async () => {
    const one = new Followed('one');
    const changes = changesOf([one], new AbortController().signal);
    await changes.next();
    one.become(TASK_STATE_COMPLETED);
    await changes.next();
    expect(one.yielded).toEqual([[]]);
  });
});
