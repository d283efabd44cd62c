import { OPERATIONS, type Scope, TaskState } from '@baton/a2a';
import type { BulkAction } from '@baton/database';

/** To which tasks an action can be done, and who may. */
interface ActionRule {
  /** In the order in which they are looked through: tasks move from the first to the last. */
  states: readonly TaskState[];
  /** One of these is enough. */
  scopes: readonly Scope[];
}

const OPEN = [
  TaskState.TASK_STATE_SUBMITTED,
  TaskState.TASK_STATE_WORKING,
  TaskState.TASK_STATE_INPUT_REQUIRED,
  TaskState.TASK_STATE_AUTH_REQUIRED,
];
const ENDED = [
  TaskState.TASK_STATE_COMPLETED,
  TaskState.TASK_STATE_FAILED,
  TaskState.TASK_STATE_CANCELED,
  TaskState.TASK_STATE_REJECTED,
];

/** What a token needs that acts on many tasks. A caller that lacks `tasks:read` or `tasks:write` reaches its own tasks. */
export const ACTION_RULES: Readonly<Record<BulkAction, ActionRule>> = {
  cancel: { states: OPEN, scopes: OPERATIONS.cancelTask.scopes },
  // A parked task is working.
  resume: { states: [TaskState.TASK_STATE_WORKING], scopes: OPERATIONS.cancelTask.scopes },
  continue: { states: [TaskState.TASK_STATE_FAILED], scopes: OPERATIONS.sendMessage.scopes },
  'send-again': { states: ENDED, scopes: OPERATIONS.sendMessage.scopes },
  // A deletion affects all callers.
  delete: { states: ENDED, scopes: ['admin'] },
};
