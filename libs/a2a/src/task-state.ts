import { TaskState, taskStateToJSON } from './model.js';

const TERMINAL: ReadonlySet<TaskState> = new Set([
  TaskState.TASK_STATE_COMPLETED,
  TaskState.TASK_STATE_FAILED,
  TaskState.TASK_STATE_CANCELED,
  TaskState.TASK_STATE_REJECTED,
]);
const INTERRUPTED: ReadonlySet<TaskState> = new Set([
  TaskState.TASK_STATE_INPUT_REQUIRED,
  TaskState.TASK_STATE_AUTH_REQUIRED,
]);

/** Terminal states are final: no event follows them and nothing leads out of them (A2A 1.0 §4.1.3). */
export const isTerminal = (state: TaskState): boolean => TERMINAL.has(state);

/** The task waits for its caller (A2A 1.0 §4.1.3). */
export const isInterrupted = (state: TaskState): boolean => INTERRUPTED.has(state);

/** The states that end a turn: a blocking send returns and a stream closes (A2A 1.0 §3.2.2). */
export const endsTurn = (state: TaskState): boolean => isTerminal(state) || isInterrupted(state);

/** `TASK_STATE_INPUT_REQUIRED` is `input-required`. */
export const stateName = (state: TaskState): string =>
  taskStateToJSON(state).replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-');
