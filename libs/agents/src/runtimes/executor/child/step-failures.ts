import { cut } from '../protocol.js';
import { errorExtras, STEP_LIMITS, type StepFailure } from '../step-protocol.js';

/** The stored form of an error. It never throws. */
export function failureOf(error: unknown): StepFailure {
  try {
    // An agent's error may have a name or a message that is no string.
    const thrown = error instanceof Error ? error : new Error(String(error));
    const { name, message }: { name: unknown; message: unknown } = thrown;
    return {
      name: cut(String(name), 200),
      message: cut(String(message), STEP_LIMITS.error),
      ...extrasOf(thrown),
    };
  } catch {
    return { name: 'Error', message: 'The step threw a value that cannot be shown' };
  }
}

/** An error may have a `data` that JSON cannot hold. */
function extrasOf(error: Error): Pick<StepFailure, 'code' | 'data'> {
  try {
    return errorExtras(error);
  } catch {
    return {};
  }
}

/** An error as it was stored. */
export function restoredError({ name, message, ...extras }: StepFailure): Error {
  const error = Object.assign(new Error(message), { name, ...extras });
  // Its stack would be that of this function.
  error.stack = `${name}: ${message}`;
  return error;
}

/** The error with notes for the author at the end of its message. */
export function withNotes(thrown: unknown, notes: readonly string[]): Error {
  const { name, message, ...extras } = failureOf(thrown);
  const error = restoredError({ name, message: `${message} (${notes.join('; ')})`, ...extras });
  if (thrown instanceof Error && thrown.stack !== undefined) error.stack = thrown.stack;
  return error;
}
