import { isTerminal, ProtocolError, type StreamItem, type Task, TaskState } from '@baton/a2a';

/** A task that may be large. */
export interface LentTask {
  task: Task;
  /** The memory that it takes is no longer needed. */
  giveBack: () => void;
}

/** A task of a subscription. */
export interface FollowedTask {
  /** Its events. Unset: it has ended. */
  items?: ((signal: AbortSignal) => AsyncGenerator<StreamItem[]>) | undefined;
  /** Reads it as it is. */
  read: () => Promise<LentTask>;
}

/**
 * Yields each task as it is, and again after each change of its status, until all have ended. A slow reader gets the newest state alone.
 * A task is read when the reader takes it, one at a time, and its memory is given back when the reader has taken it: readers that take
 * nothing would else hold all their tasks in memory.
 */
export async function* changesOf(
  tasks: readonly FollowedTask[],
  signal: AbortSignal,
): AsyncGenerator<StreamItem[]> {
  const changed = new Set(tasks);
  const shown = new Map<FollowedTask, string>();
  let open = tasks.length;
  let failure: Error | undefined;
  let wake: () => void = () => undefined;
  const follow = async (followed: FollowedTask): Promise<void> => {
    try {
      for await (const news of newsOf(followed, signal)) {
        changed.add(news);
        wake();
      }
    } catch (error) {
      failure ??= error instanceof Error ? error : new Error(String(error));
    } finally {
      open -= 1;
      wake();
    }
  };
  for (const followed of tasks) void follow(followed);
  let sequence = 0;
  while (!signal.aborted) {
    const [next] = changed;
    if (next) {
      changed.delete(next);
      const { item, giveBack } = await itemOf(next, shown, sequence + 1);
      try {
        if (item.length === 0) continue;
        sequence += 1;
        yield item;
      } finally {
        giveBack();
      }
    } else if (failure) throw failure;
    else if (open === 0) return;
    else await new Promise<void>((resolve) => (wake = resolve));
  }
}

/** The task as it is now. Empty: its status was shown last. */
async function itemOf(
  followed: FollowedTask,
  shown: Map<FollowedTask, string>,
  sequence: number,
): Promise<{ item: StreamItem[]; giveBack: () => void }> {
  const { task: value, giveBack } = await followed.read();
  const version = versionOf(value);
  if (shown.get(followed) === version) return { item: [], giveBack };
  shown.set(followed, version);
  return { item: [{ sequence, payload: { $case: 'task', value } }], giveBack };
}

/** The followed task, whenever its status may have changed. */
async function* newsOf(followed: FollowedTask, signal: AbortSignal): AsyncGenerator<FollowedTask> {
  try {
    for await (const batch of followed.items?.(signal) ?? []) {
      const { isChanged, isLast } = changeBy(batch.splice(0));
      if (isChanged) yield followed;
      if (isLast) return;
    }
  } catch (error) {
    if (signal.aborted) return;
    // It has ended before it was followed.
    if (!(error instanceof ProtocolError && error.kind === 'unsupported-operation')) throw error;
    yield followed;
  }
}

/** Whether events may have changed the status of a task, and whether they have ended it. */
function changeBy(events: readonly StreamItem[]): { isChanged: boolean; isLast: boolean } {
  const states = events.flatMap(({ payload: { $case, value } }) =>
    $case === 'artifactUpdate' ? [] : [value],
  );
  return {
    isChanged: states.length > 0,
    isLast: states.some((state) => 'status' in state && isOver(state)),
  };
}

const versionOf = ({ status }: Task): string =>
  `${status?.state} ${status?.timestamp} ${status?.message?.messageId}`;

/** Whether nothing more will happen to a task. */
export const isOver = ({ status }: Pick<Task, 'status'>): boolean =>
  isTerminal(status?.state ?? TaskState.TASK_STATE_UNSPECIFIED);
