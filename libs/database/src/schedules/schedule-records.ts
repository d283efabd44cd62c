import type { Message, TaskState } from '@baton/a2a';

export const OVERLAPS = ['skip', 'queue', 'allow', 'cancel-previous'] as const;
/** What becomes of a time that comes while the task of the one before is not over. */
export type Overlap = (typeof OVERLAPS)[number];

export const MISSED = ['fire-once', 'skip'] as const;
/** What becomes of times that nobody could fire, as when no worker was running. */
export type Missed = (typeof MISSED)[number];

export const CONTEXTS = ['new', 'same'] as const;
/** Whether each task begins a conversation, or all of them are one. */
export type ScheduleContext = (typeof CONTEXTS)[number];

/** When a schedule fires. Of `cron` and `at` one is set. */
export interface ScheduleTimes {
  cron: string | null;
  at: Date | null;
  /** IANA name; what `cron` is read in. */
  timeZone: string;
  /** Times of `cron` before this, or after that, do not count. */
  startsAt: Date | null;
  endsAt: Date | null;
}

/** What a tenant says of a schedule. */
export interface ScheduleSpec extends ScheduleTimes {
  /** Its own in the tenant. */
  name: string;
  /** Slug or id. */
  agent: string;
  /** What is said each time, without ids. */
  message: Message;
  overlap: Overlap;
  missed: Missed;
  context: ScheduleContext;
  /** It ends after so many tasks. */
  maxCount: number | null;
  paused: boolean;
}

/** `started`: a task was made. `refused`: it was not, for a reason. */
export type FiringOutcome = 'started' | 'skipped' | 'missed' | 'refused';

/** What came of a time of a schedule. */
export interface Firing {
  dueAt: Date;
  /** When it was fired, or not. */
  at: Date;
  outcome: FiringOutcome;
  reason: string | null;
}

/** A schedule and how far it has come. */
export interface Schedule extends ScheduleSpec {
  tenantId: string;
  id: string;
  /** Tasks that its times have made. */
  fired: number;
  /** The next time; null while it is paused, or if there is none. */
  nextAt: Date | null;
  /** `nextAt` has come and waits for the task before to end. */
  isWaiting: boolean;
  /** The time that is being fired: whether and how is decided, its task may be there already. */
  pendingAt: Date | null;
  /** Grows with every change. */
  version: number;
  last: Firing | null;
  /** The last task that it has made, which may be of a time before `last`. */
  lastTaskId: string | null;
  /** As it is now; null = there is no such task, or no longer. */
  lastTaskState: TaskState | null;
  createdAt: Date;
  updatedAt: Date;
}

/** A schedule that a worker is to fire, and what time it was for Postgres when it was taken. */
export interface DueSchedule {
  schedule: Schedule;
  now: Date;
}

/** What a worker says of a time when it is through with it. */
export interface FiringResult extends Omit<Firing, 'at'> {
  /** The task that was made. */
  taskId: string | null;
  nextAt: Date | null;
}
