import type { TenantSchemas } from '@baton/contract';

export type TaskState = NonNullable<TenantSchemas['TaskSummary']['state']>;

/** The states of a task, and the colour of each. */
export const STATE_COLOURS: Readonly<Record<TaskState, string>> = {
  submitted: 'gray',
  working: 'blue',
  'input-required': 'orange',
  'auth-required': 'orange',
  completed: 'green',
  failed: 'red',
  rejected: 'red',
  canceled: 'gray',
};

export const STATES = Object.keys(STATE_COLOURS) as readonly TaskState[];

/** Whether a task has ended, for good. */
export const isTerminal = (state: string | undefined): boolean =>
  state !== undefined && ['completed', 'failed', 'rejected', 'canceled'].includes(state);

/** Whether a task waits for its caller. */
export const isWaiting = (state: string | undefined): boolean =>
  state === 'input-required' || state === 'auth-required';
