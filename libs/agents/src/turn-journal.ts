/** One value of a journal. */
export interface JournalEntry {
  /** The run that wrote it: one turn of the task. */
  runId: string;
  /** From 1, without holes, over all turns of the task. */
  position: number;
  /** Any JSON value. */
  value: unknown;
}

/**
 * What a runtime must remember across a crash of its worker and from turn to turn: a list of JSON values per task,
 * in Postgres, that only grows. It goes when the task is deleted.
 */
export interface TurnJournal {
  /**
   * Every entry of a task, of all its turns, oldest first.
   * @param taskId another task of the tenant, as one of `earlierTasks`; left out = the turn's own
   */
  read(taskId?: string): Promise<JournalEntry[]>;
  /** Durable when it resolves. Rejects if the run is no longer this attempt's; nothing was written then. */
  append(value: unknown): Promise<void>;
}
