import { v5 as uuid } from 'uuid';

/** The id of the task that a call of a task begins: the same in every attempt, so that it is begun once. */
export const childIdOf = (taskId: string, callId: string): string => uuid(callId, taskId);
