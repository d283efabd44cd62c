/** The work of the sweeps. A sweep checks everything but the first two fields again when it takes its work. */
export interface SweepFindings {
  /** The clock of Postgres at a moment at which it certainly took heartbeats. */
  at: string;
  /** Time from `at` until something is due next, in ms: the end of a lease, a pause, a sleep or a wait. Null: nothing is. */
  nextMs: number | null;
  expiredRuns: boolean;
  /** Runs of workers whose session has ended and who have not extended the lease since. */
  orphanedRuns: boolean;
  staleQueuedRuns: boolean;
  /** Runs that may be put on the queue as soon as there is room. */
  waitingRuns: boolean;
  /** Suspended runs whose time has come. */
  dueSleeps: boolean;
  /** Suspended runs that wait for other tasks. */
  waitsForTasks: boolean;
  parkedRuns: boolean;
  /** Tasks that continue without an answer now. */
  unansweredTasks: boolean;
  /** Canceled tasks whose calls tool servers may still execute. */
  canceledRemoteCalls: boolean;
  /** Canceled tasks with steps to undo. */
  dueCompensations: boolean;
  /** Children of tasks that have not ended. */
  openChildren: boolean;
  dueSchedules: boolean;
  duePushes: boolean;
  /** Operations on many tasks. */
  bulkOperations: boolean;
  /** Tasks that wait for a person, of which webhooks get a notice. */
  dueReminders: boolean;
  /** Spending caps that are nearly used, of which webhooks get a notice. */
  dueSpendingWarnings: boolean;
  /** Versions of agents that get a share of new tasks, by the label `next`. */
  triedVersions: boolean;
}
