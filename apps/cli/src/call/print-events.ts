import { stateName, TaskState } from '@baton/a2a';
import { EXIT } from '../exit.js';
import { OfTaskError } from '../of-task-error.js';
import { OperatorError } from '../operator-error.js';
import { oneLine } from '../output.js';
import { UsageError } from '../usage-error.js';
import { type NumberedEvent, type Payload, stateIn } from './agent-client.js';
import { textOf } from './describe.js';

/** How a turn ended: what decides the exit code and the note after the answer. */
export interface TurnResult {
  taskId: string;
  state: TaskState;
  text: string;
}

export const LOST = 'The connection was lost. Continuing after the last event.';

/**
 * Print events as they come.
 * @param taskId the task, if it is known before its first event; errors name it
 * @returns the last state of the task; undefined if there was none
 */
export async function printEvents<E extends NumberedEvent>(
  events: AsyncIterable<E>,
  print: (event: E) => void,
  taskId = '',
): Promise<TurnResult | undefined> {
  let end: TurnResult | undefined;
  try {
    for await (const event of events) {
      print(event);
      end = endIn(event.payload) ?? end;
    }
    return end;
  } catch (error) {
    const known = end?.taskId ?? taskId;
    throw known === '' ? error : new OfTaskError(known, error);
  }
}

function endIn(payload: Payload): TurnResult | undefined {
  if (payload.$case !== 'task' && payload.$case !== 'statusUpdate') return undefined;
  const taskId = payload.$case === 'task' ? payload.value.id : payload.value.taskId;
  const parts = payload.value.status?.message?.parts ?? [];
  return { taskId, state: stateIn(payload) ?? TaskState.TASK_STATE_UNSPECIFIED, text: textOf(parts) };
}

/** The states of a task that did not succeed. */
const EXIT_OF: Partial<Record<TaskState, number>> = {
  [TaskState.TASK_STATE_FAILED]: EXIT.taskFailed,
  [TaskState.TASK_STATE_REJECTED]: EXIT.taskFailed,
  [TaskState.TASK_STATE_CANCELED]: EXIT.taskCanceled,
};

/** Throws OperatorError when the task did not succeed. */
export function assertDone({ taskId, state, text }: TurnResult): void {
  const exitCode = EXIT_OF[state];
  if (exitCode === undefined) return;
  const reason = oneLine(text) || 'no reason is given';
  throw new OperatorError(`Task ${taskId} ${stateName(state)}: ${reason}`, { exitCode });
}

/** `--after`. Throws UsageError. */
export function parseSequence(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new UsageError(`--after: "${text}" is not the number of an event: give 0, 1, 2 …`);
}
