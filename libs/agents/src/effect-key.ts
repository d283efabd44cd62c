import { v5 as uuidOf } from 'uuid';

const EFFECTS = '5d7c5f0e-3b0a-4f0e-9d0b-6c1f3f6f8a52';

/**
 * The key of an effect that a task has outside of Baton: a step, or the tool call. It is the same in every attempt and in every
 * process, and different for each effect, so that a receiver recognizes a repetition. It is a UUID, and shows none of its parts.
 * @param of identifies the effect in its task
 */
export const effectKey = (taskId: string, ...of: readonly (string | number)[]): string =>
  uuidOf(JSON.stringify([taskId, ...of]), EFFECTS);
