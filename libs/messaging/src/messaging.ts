/** A job of the queue: ids only. Everything else is in Postgres. */
export interface RunJob {
  tenantId: string;
  taskId: string;
  runId: string;
  /** Number of earlier claims of the run. It makes the job's id unique per try, so that adding it twice is harmless. */
  attempt: number;
  /**
   * Few runs of its tenant are in flight. It is put on a queue of its own, from which a worker also fills its reserved
   * slots.
   */
  mayUseReserved?: boolean;
}

/** A run that was claimed for a worker at acceptance (eager start): its ids. */
export interface EagerRun extends Pick<RunJob, 'tenantId' | 'taskId' | 'runId' | 'mayUseReserved'> {
  /** All that the worker needs, and the proof of its sender. Unset: the worker reads the run. */
  sealed?: string | undefined;
}

/**
 * Executes a run. Must never reject.
 * @param claimed to be called when the claim is decided in Postgres: the job is then done, and the run continues. A job whose
 *   process dies before that is delivered again.
 */
export type RunHandler = (job: RunJob, claimed: () => void) => Promise<void>;

/** A task has events that its push configs wait for. Postgres has the due configs. */
export interface PushJob {
  tenantId: string;
  taskId: string;
}

/** One event as published: `json` is `serializePayload(payload)`. */
export interface PublishedEvent {
  sequence: number;
  attempt: number;
  json: string;
  /**
   * Outcome of the turn, on the event that ends it, if the log has everything else of the task's row. A reader of the whole log
   * then need not read the row.
   */
  outcome?: (typeof OUTCOMES)[number];
}

/** `none`: the turn ended in the ordinary way. Processes of two releases may run: add to the end only. */
export const OUTCOMES = ['none', 'message', 'agent-threw'] as const;

/** A notification about a task: the committed events, or only their last sequence if they are too large. */
export interface TaskSignal {
  lastSequence: number;
  events: PublishedEvent[];
}

/** Broadcast to every process. */
export type ControlMessage =
  | { type: 'run-canceled'; tenantId: string; taskId: string; runId: string }
  // Also after any other change of a token: all releases then read it again.
  | { type: 'token-revoked'; tenantId: string; tokenId: string }
  | { type: 'issuers-changed'; tenantId: string; issuer: string }
  | { type: 'limits-changed'; tenantId: string }
  | { type: 'tenant-suspended'; tenantId: string }
  | { type: 'catalog-changed'; tenantId: string | null }
  // The sender could not publish some signals. Each driver calls the listeners of `onSignalsMissed`.
  | { type: 'signals-lost' };

export type Unsubscribe = () => void;

/** A subscription to a channel. */
export interface Subscription {
  /** Resolves when the subscription is in force: later messages reach the listener. It may never do so. */
  inForce: Promise<void>;
  /** Ends the subscription, also one that is not in force yet. */
  end: Unsubscribe;
}

/** Whether something is allowed now, and if not, after how many milliseconds to ask again. */
export interface Spending {
  allowed: boolean;
  retryAfterMs: number;
}

/** When a schedule fires: at each time of a cron expression, or once. */
export interface TickTimes {
  tenantId: string;
  scheduleId: string;
  /** A cron expression of five fields, or six with seconds first. */
  cron?: string;
  /** One time, instead of `cron`. */
  at?: Date;
  /** IANA name of the time zone of `cron`. */
  timeZone: string;
  /** Times of `cron` before this are ignored. */
  startsAt?: Date;
}

/** A schedule may be due. Postgres decides. */
export interface Tick {
  tenantId: string;
  scheduleId: string;
  dueAt: Date;
}

/** A running consumer of jobs. */
export interface Consumer {
  /** Take no jobs until `resume`. Running handlers continue. */
  pause(): void;
  resume(): void;
  /** Stop taking jobs. Resolves when the running handlers have returned. */
  close(): Promise<void>;
}

/** A consumer of the queue of runs. */
export interface RunConsumption extends Consumer {
  /**
   * Execute a run that did not come by the queue, in one of the slots of this consumer.
   * @returns false: no slot is free for it, or the consumer takes no runs now
   */
  tryStart(run: Pick<RunJob, 'tenantId' | 'mayUseReserved'>, execute: () => Promise<void>): boolean;
  /**
   * Keep this many slots free from now on for runs that may use them (`RunJob.mayUseReserved`). At first none.
   * @param perTenant a tenant with so many runs in this consumer gets no further one of these slots
   */
  reserve(slots: number, perTenant: number): void;
}

/**
 * The queue and the channels between processes. All of its data can be lost: the sweeper enqueues every queued run again from
 * Postgres, and every relay reads its log again.
 * Two drivers: Redis (BullMQ + pub/sub; production) and Postgres (BullMQ's Postgres backend + LISTEN/NOTIFY).
 */
export abstract class Messaging {
  abstract readonly driver: 'redis' | 'postgres';
  /** Connect; rejects with a plain reason if the server cannot be reached within `timeoutMs`. */
  abstract start(timeoutMs: number): Promise<void>;
  /** Put runs on the queue. Adding the same (runId, attempt) again while it waits is a no-op. Rejects fast (≤ 2 s) when the server is away. */
  abstract enqueueRuns(jobs: readonly RunJob[]): Promise<void>;
  /**
   * Put runs on the queue that have not been there with this attempt. Runs of one call share jobs. Rejects fast (≤ 2 s) when
   * the server is away.
   */
  abstract enqueueNewRuns(jobs: readonly RunJob[]): Promise<void>;
  /** Take runs, and execute at most `concurrency` at a time. */
  abstract consumeRuns(concurrency: number, handle: RunHandler): RunConsumption;
  /** Whether runs can be sent to workers now. Only on Redis: `NOTIFY` of Postgres does not count its subscribers. */
  abstract get supportsEagerStart(): boolean;
  /**
   * Send a worker a run that was claimed for it. Never rejects.
   * @returns false: the worker has no subscription. Undefined: unknown, because the connection was lost
   */
  abstract sendEagerRun(workerId: string, run: EagerRun): Promise<boolean | undefined>;
  /**
   * Receive the runs that are sent to a worker.
   * @returns unsubscribe. Once it resolves, `sendEagerRun` reports that there is no subscriber. Every run that was sent
   *   earlier has reached the listener.
   */
  abstract receiveEagerRuns(workerId: string, listener: (run: EagerRun) => void): () => Promise<void>;
  /** Set when a schedule fires. Replaces earlier times. Rejects fast (≤ 2 s) when the server is away. */
  abstract setTicks(times: TickTimes): Promise<void>;
  /** The schedule no longer fires. Rejects fast (≤ 2 s) when the server is away. */
  abstract stopTicks(scheduleId: string): Promise<void>;
  /**
   * Take ticks; each reaches one consumer. The handler must never reject. A tick may be lost: Postgres has the due
   * schedules.
   */
  abstract consumeTicks(take: (tick: Tick) => Promise<void>): Consumer;
  /**
   * Notify the workers of tasks whose push configs have something due. A task that waits already is not notified again.
   * Rejects fast (≤ 2 s) when the server is away.
   */
  abstract enqueuePushes(jobs: readonly PushJob[]): Promise<void>;
  /**
   * Receive these notifications; each reaches one consumer. The handler must never reject. A notification may be lost: Postgres has
   * the due configs.
   */
  abstract consumePushes(concurrency: number, take: (job: PushJob) => Promise<void>): Consumer;
  /** Publish to every subscriber of the task. Never rejects: the relay finds the events of a lost signal. */
  abstract publishTask(tenantId: string, taskId: string, signal: TaskSignal): Promise<void>;
  abstract subscribeTask(
    tenantId: string,
    taskId: string,
    listener: (signal: TaskSignal) => void,
  ): Subscription;
  abstract publishControl(message: ControlMessage): Promise<void>;
  abstract subscribeControl(listener: (message: ControlMessage) => void): Promise<Unsubscribe>;
  /**
   * Count one use of `key`, over all processes: at most `limit` in `perSeconds` seconds, which begin with the first use
   * in them. Never rejects: while the server is away each process counts alone.
   */
  abstract spend(key: string, limit: number, perSeconds: number): Promise<Spending>;
  /**
   * Called when signals may have been missed: the lost connection of this process is back, or another process could not publish
   * and now can.
   */
  abstract onSignalsMissed(listener: () => void): Unsubscribe;
  /** Rejects with a plain reason if the server does not answer. */
  abstract ping(): Promise<void>;
  /**
   * Why the server answers and yet refuses a command that Baton needs, such as while it is full, or to a user without the right. Undefined:
   * it refuses none, or is away.
   */
  abstract refusal(): Promise<string | undefined>;
  /**
   * The `maxmemory-policy` of a server that deletes keys when it is full, and so may delete the queue. Undefined: it does not, or
   * is away.
   */
  abstract evictionPolicy(): Promise<string | undefined>;
  /** Runs on the queue: waiting, and delivered to a worker but not yet claimed (`active`). */
  abstract queueDepth(): Promise<{ waiting: number; active: number }>;
  abstract close(): Promise<void>;
}
