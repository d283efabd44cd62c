/** The work of the sweeps. Everything but the first two fields is checked again when a sweep takes its work. */
export interface SweepFindings {
  /** The clock of Postgres at a moment at which it certainly took heartbeats. */
  at: string;
  /** When the next lease ends, pause before an attempt of a run or of a push, sleep of a suspended run, or wait for an answer, in ms from then on; null: there is none. */
  nextMs: number | null;
  expiredRuns: boolean;
  /** Runs of workers whose session has ended, and that did not extend the lease since. */
  orphanedRuns: boolean;
  staleQueuedRuns: boolean;
  /** Runs that may be put on the queue as soon as there is room. */
  waitingRuns: boolean;
  suspendedRuns: boolean;
  /** Tasks that go on without an answer now. */
  unansweredTasks: boolean;
  /** Canceled tasks whose calls tool servers may still go on with. */
  canceledRemoteCalls: boolean;
  /** Canceled tasks with steps to undo. */
  dueCompensations: boolean;
  /** Children of tasks that have not ended. */
  openChildren: boolean;
  dueSchedules: boolean;
  duePushes: boolean;
  /** Operations on many tasks. */
  bulkOperations: boolean;
  /** Tasks that wait for a person, of which webhooks are to be told. */
  dueReminders: boolean;
  /** Spending caps that are nearly used, of which webhooks are to be told. */
  dueSpendingWarnings: boolean;
}
