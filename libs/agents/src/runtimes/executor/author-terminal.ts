import { JournalMismatch } from '../../journal-mismatch.js';
import { AgentError } from './agent-error.js';

/** Prints a text in the terminal of `npm start`. A process that runs alone has no such terminal. */
export function printToAuthor(text: string): void {
  process.send?.({ type: 'output', text });
}

/**
 * Passes on the output of a turn. If the agent's code throws, its author reads the stack in the terminal of `npm start`.
 * @param slug of the agent
 */
export async function* printingErrors<T, R>(
  output: AsyncGenerator<T, R>,
  slug: string,
): AsyncGenerator<T, R> {
  try {
    return yield* output;
  } catch (error) {
    if (error instanceof AgentError) printToAuthor(`${slug}: ${error.detail.stack ?? error.detail.message}`);
    else if (error instanceof JournalMismatch) printToAuthor(`${slug}: a task is parked. ${error.problem}`);
    throw error;
  }
}
