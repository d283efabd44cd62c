import type { TaskEvent } from '@baton/a2a';
import type { CancelResult, NewTask, NextTurn, NextTurnResult, StoredTask, TaskFilter } from './records.js';

/** Tasks and their logs, as callers see them. Every method works inside one tenant (row-level security). */
export declare class TaskStore {
  /** One transaction: task, message, event 1 and a queued run. */
  create(input: NewTask): Promise<void>;
  /** One transaction: the message, a `submitted` event and a queued run; refused unless the task is interrupted. */
  continue(input: NextTurn): Promise<NextTurnResult>;
  /** The task at the head of its log; snapshot and sequence come from one statement, so neither is older. */
  get(
    tenantId: string,
    taskId: string,
    options?: { historyLength?: number; artifacts?: boolean },
  ): Promise<StoredTask | undefined>;
  list(filter: TaskFilter): Promise<{ tasks: StoredTask[]; total: number; more: boolean }>;
  /** Compare-and-set to `canceled`, with its event; finishes the active run as canceled. */
  cancel(tenantId: string, agentId: string, taskId: string): Promise<CancelResult>;
  /** Events after `after`, in order, at most `limit`. */
  readEvents(tenantId: string, taskId: string, after: number, limit: number): Promise<TaskEvent[]>;
  /** Head sequence of many tasks at once (across tenants), for the relay's slow tick. */
  heads(keys: readonly { tenantId: string; taskId: string }[]): Promise<Map<string, number>>;
}
