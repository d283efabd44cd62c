import type { Message, TaskState } from '@baton/a2a';

export const OVERLAPS = ['skip', 'queue', 'allow', 'cancel-previous'] as const;
/** What to do with a time while the previous task has not ended. */
export type Overlap = (typeof OVERLAPS)[number];

export const MISSED = ['fire-once', 'skip'] as const;
/** What to do with due times that passed while no worker was alive. */
export type Missed = (typeof MISSED)[number];

export const CONTEXTS = ['new', 'same'] as const;
/** Whether each task begins a conversation, or all tasks share one. */
export type ScheduleContext = (typeof CONTEXTS)[number];

/** When a schedule fires. Either `cron` or `at` is set. */
export interface ScheduleTimes {
  cron: string | null;
  at: Date | null;
  /** IANA name; what `cron` is read in. */
  timeZone: string;
  /** Times of `cron` before this, or after that, do not count. */
  startsAt: Date | null;
  endsAt: Date | null;
}

/** The definition of a schedule. */
export interface ScheduleSpec extends ScheduleTimes {
  /** Its own in the tenant. */
  name: string;
  /** Slug or id. */
  agent: string;
  /** The message of each task, without ids. */
  message: Message;
  overlap: Overlap;
  missed: Missed;
  context: ScheduleContext;
  /** It ends after this many tasks. */
  maxCount: number | null;
  paused: boolean;
}

/** `started`: a task was created. `refused`: it was not, for `reason`. */
export type FiringOutcome = 'started' | 'skipped' | 'missed' | 'refused';

/** The outcome of a time of a schedule. */
export interface Firing {
  dueAt: Date;
  /** When it was fired, or not. */
  at: Date;
  outcome: FiringOutcome;
  reason: string | null;
}

/** How many times of a schedule have made no task, by outcome. */
export type PassedTimes = Record<Exclude<FiringOutcome, 'started'>, number>;

/** A schedule and its state. */
export interface Schedule extends ScheduleSpec {
  tenantId: string;
  id: string;
  /** Key of the principal that has created it; its tasks are that principal's. Null = created by an earlier release. */
  owner: string | null;
  /** Tasks that its times have made. */
  fired: number;
  /** Times that have made no task. */
  passed: PassedTimes;
  /** Why Baton has paused it; null = its tenant has, or it is not paused. */
  pausedReason: string | null;
  /** The next time; null while it is paused, or if there is none. */
  nextAt: Date | null;
  /** `nextAt` has passed and waits for the end of the previous task. */
  isWaiting: boolean;
  /** The time that is being fired. The decision is stored; its task may exist already. */
  pendingAt: Date | null;
  /** Grows with every change. */
  version: number;
  last: Firing | null;
  /** The last task that it created. It may belong to a time before `last`. */
  lastTaskId: string | null;
  /** Its present state; null = there is no such task, or it was deleted. */
  lastTaskState: TaskState | null;
  /** The last tasks that it created and that are still there, the newest first, at most ten. */
  recentTasks: { taskId: string; state: TaskState; createdAt: Date }[];
  createdAt: Date;
  updatedAt: Date;
}

/** A leased schedule, and Postgres's time at the lease. */
export interface DueSchedule {
  schedule: Schedule;
  now: Date;
}

/** The result of a time that a worker has handled. */
export interface FiringResult extends Omit<Firing, 'at'> {
  /** The task that was made. */
  taskId: string | null;
  nextAt: Date | null;
  /** How many times have made no task: this one, and those until `nextAt`. */
  passed: PassedTimes;
  /** Why the schedule is paused from now on; null = it continues. */
  pauseReason: string | null;
}
