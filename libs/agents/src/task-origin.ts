import { Message, type Task } from '@baton/a2a';
import { z } from 'zod';

const originEntry = z.object({
  kind: z.literal('origin'),
  taskIds: z.array(z.string()).min(1),
  history: z.array(z.unknown()),
  copied: z.int().min(0),
  effectsOf: z.object({ taskId: z.string(), runId: z.string() }).optional(),
});

/** Where a task comes from that continues the journal of an earlier one. It is the first entry of its journal. */
export interface TaskOrigin {
  /** The chain of the continued tasks. The task that this one continues is the first. */
  taskIds: readonly string[];
  /** The messages before the turn that continues. The runtime gets them before those of the task. */
  history: readonly Message[];
  /** Number of entries that were copied, after the first one. */
  copied: number;
  /** The task and the run whose effects its first run continues with, with the same keys. Unset: it is a fork, and its effects are others. */
  effectsOf?: { taskId: string; runId: string } | undefined;
}

/** The first entry of a journal, as it is stored. */
export const originJson = ({ taskIds, history, copied, effectsOf }: TaskOrigin): object => ({
  kind: 'origin',
  taskIds,
  history: history.map((message) => Message.toJSON(message)),
  copied,
  ...(effectsOf !== undefined && { effectsOf }),
});

/** The stored journal of a task: where the task comes from, if it continues another one, and the entries of its runtime. */
export function splitJournal<Entry extends { value: unknown }>(
  stored: Entry[],
): {
  origin: TaskOrigin | undefined;
  entries: Entry[];
} {
  const origin = originOf(stored[0]?.value);
  return { origin, entries: origin ? stored.slice(1) : stored };
}

/** The origin of a stored value. Undefined: it is another entry, or there is none. */
export function originOf(value: unknown): TaskOrigin | undefined {
  const { data } = originEntry.safeParse(value);
  return data && { ...data, history: data.history.map((message) => Message.fromJSON(message)) };
}

/** The task for its runtime: with the messages of the tasks that it continues. */
export const withOrigin = (task: Task, { history }: TaskOrigin): Task => ({
  ...task,
  history: [...history, ...task.history],
});

type OriginatedTask = { task: Pick<Task, 'id'>; origin?: TaskOrigin | undefined };

/** The task that the keys of a task's effects name. */
export const taskOfEffects = ({ task, origin }: OriginatedTask): string =>
  origin?.effectsOf?.taskId ?? task.id;

/** The run that the effects of a turn name. */
export const runOfEffects = ({ task, origin, runId }: OriginatedTask & { runId: string }): string =>
  // The first run of a task has its id.
  (runId === task.id ? origin?.effectsOf?.runId : undefined) ?? runId;
