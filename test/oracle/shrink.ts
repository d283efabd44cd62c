import { type Arguments, lineOf, type Operation, type Verb } from './operations.js';

/** One operation, or two at the same time. */
export type Step = readonly [Operation] | readonly [Operation, Operation];

/** A sequence of which the last step shows a difference. */
export interface Failure {
  steps: readonly Step[];
  difference: string;
}

/** How often a sequence with two operations at the same time is tried: who comes first is chance. */
const TRIES = 3;

/** Fields that an operation does not need. */
const OPTIONAL_FIELDS: { readonly [V in Verb]?: readonly (keyof Arguments[V] & string)[] } = {
  createTask: ['alias', 'child', 'claimFor', 'key', 'quota', 'retry'],
  continueTask: ['key', 'quota', 'retry'],
  cancelTask: ['metadata', 'owner'],
  appendEvents: ['metadata'],
  endTurn: ['error', 'wakeInMs'],
};

/**
 * Looks for a shorter sequence with a difference: leaves out whole tasks, one of two operations at the same time, several steps,
 * single steps, and then what the operations do not need.
 * @param replay executes a sequence from its beginning; undefined: it shows no difference
 * @param maxReplays the search ends after so many replays
 */
export async function shrink(
  failure: Failure,
  replay: (steps: readonly Step[]) => Promise<Failure | undefined>,
  maxReplays: number,
): Promise<Failure> {
  let best = failure;
  let replays = 0;
  const attempt = async (steps: readonly Step[]): Promise<boolean> => {
    const tries = steps.some(({ length }) => length > 1) ? TRIES : Math.min(steps.length, 1);
    for (let i = 0; i < tries && replays < maxReplays; i++) {
      replays += 1;
      const found = await replay(steps);
      if (found) best = found;
      if (found) return true;
    }
    return false;
  };

  /** So many steps at a time, but never the last step. */
  const leaveOut = async (size: number): Promise<void> => {
    for (let from = best.steps.length - 1 - size; from > -size; from -= size) {
      await attempt(best.steps.filter((_, i) => i < from || i >= from + size));
    }
  };

  for (const name of tasksOf(best.steps)) {
    const others = best.steps.filter((step) => !tasksOf([step]).has(name));
    if (others.length < best.steps.length) await attempt(others);
  }
  for (let i = best.steps.length - 1; i >= 0; i--) {
    const [first, second] = best.steps[i] ?? [];
    if (!first || !second) continue;
    for (const steps of [[[second]], [[first]], [[first], [second]], [[second], [first]]] as Step[][]) {
      if (await attempt(best.steps.toSpliced(i, 1, ...steps))) break;
    }
  }
  for (let size = Math.ceil(best.steps.length / 2); size > 1; size = Math.ceil(size / 2))
    await leaveOut(size);
  await leaveOut(1);
  for (let i = 0; i < best.steps.length; i++) {
    for (const [k, { verb }] of best.steps[i]!.entries()) {
      for (const field of OPTIONAL_FIELDS[verb] ?? []) {
        const step: readonly Operation[] = best.steps[i] ?? [];
        const operation = step[k] as (Operation & Record<string, unknown>) | undefined;
        if (operation?.[field] === undefined) continue;
        const plainer = step.with(k, { ...operation, [field]: undefined });
        await attempt(best.steps.with(i, plainer as unknown as Step));
      }
    }
  }
  // Without its quota a task may need no dispatch.
  await leaveOut(1);
  return best;
}

const tasksOf = (steps: readonly Step[]): ReadonlySet<string> =>
  new Set(steps.flat().flatMap((operation) => lineOf(operation).match(/\bT\d+\b/g) ?? []));
