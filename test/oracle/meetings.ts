import type { Operation } from './operations.js';
import type { TaskModel } from './task-model.js';

/** The tasks and runs, by name, whose rows an operation may change or lock. */
export function targetsOf(operation: Operation, model: TaskModel): ReadonlySet<string> {
  const names = new Set<string>();
  const addTask = (name: string | undefined): void => {
    if (name === undefined) return;
    names.add(name);
    for (const run of model.runs) if (run.task === name) names.add(run.name);
  };
  if ('writer' in operation) addTask(operation.writer.task);
  if ('task' in operation) addTask(operation.task);
  if ('run' in operation) addTask(model.runs.find(({ name }) => name === operation.run)?.task);
  if ('child' in operation) addTask(operation.child?.parent.task);
  if ('leases' in operation) for (const { task } of operation.leases) addTask(task);
  if ('key' in operation)
    names.add(`key ${typeof operation.key === 'string' ? operation.key : operation.key?.name}`);
  if (SWEEPS.has(operation.verb)) for (const { task } of model.runs) addTask(task);
  return names;
}

const SWEEPS: ReadonlySet<string> = new Set([
  'reclaimExpired',
  'failPoisoned',
  'takeStaleQueued',
  'wakeDue',
  'wakeAll',
  'wakeAsking',
  'expireTasks',
  'dispatch',
]);

/** They skip rows that others have locked. */
const SKIPPING: ReadonlySet<string> = new Set([...SWEEPS, 'heartbeat']);

/** A task whose row both operations lock. */
export function taskOfBoth(first: Operation, second: Operation, model: TaskModel): string | undefined {
  if (SKIPPING.has(first.verb) || SKIPPING.has(second.verb)) return undefined;
  const others = targetsOf(second, model);
  const names = [...targetsOf(first, model)].filter((name) => others.has(name));
  return names.find((name) => model.tasks.some((task) => task.name === name));
}

/** Operations that decide by how many runs wait or are in flight. */
const COUNTS: ReadonlySet<string> = new Set(['createTask', 'continueTask', 'dispatch']);
/** What the oracle does to the clock is no operation of Baton. */
const TIME: ReadonlySet<string> = new Set([
  'leaseRunsOut',
  'pauseEnds',
  'answerTimeEnds',
  'queueLoses',
  'keyExpires',
  'taskGrowsOld',
  'tombstoneGrowsOld',
]);
/** They read several times, or in slices: other operations may come in between. */
const LONG: ReadonlySet<string> = new Set(['wakeAll', 'abandonedChildren', 'purgeLogs', 'readTask']);

/**
 * Whether two operations at the same time must be as if one had come after the other. Those that count slots need not: without an exact
 * quota two of them may each miss what the other one does, and a run that ends meanwhile may still be counted. Two sweeps share their
 * work in any way.
 */
export function mayMeet(first: Operation, second: Operation, model: TaskModel): boolean {
  for (const one of [first, second]) {
    if (TIME.has(one.verb) || LONG.has(one.verb)) return false;
    if (COUNTS.has(one.verb) && !isUnlimited(one, model)) return false;
  }
  return !(SWEEPS.has(first.verb) && SWEEPS.has(second.verb));
}

/** It counts nothing, and nothing waits. */
function isUnlimited(operation: Operation, model: TaskModel): boolean {
  if (operation.verb === 'dispatch') return false;
  const isCalm = !model.runs.some(({ state, hasSlot, tenant }) => {
    const isWaiting = state === 'suspended' || (state === 'queued' && !hasSlot);
    return isWaiting && 'tenant' in operation && tenant === operation.tenant;
  });
  return isCalm && 'quota' in operation && operation.quota === undefined;
}
