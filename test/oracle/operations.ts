/**
 * The operations on tasks and runs, as plain data. The model (`task-model.ts`) and Baton's stores both execute them. Tenants,
 * tasks, runs, workers and keys have short names: `A`, `T3`, `T3/2` (the second run of T3), `w1`, `K1`.
 */

export type TaskState =
  | 'submitted'
  | 'working'
  | 'input-required'
  | 'auth-required'
  | 'completed'
  | 'failed'
  | 'rejected'
  | 'canceled';

/** One attempt of a run: what a writer shows. */
export interface Attempt {
  tenant: string;
  task: string;
  run: string;
  attempt: number;
}

/** The quota with which a turn is accepted. */
export interface Quota {
  /** Null: no limit. */
  maxInFlight: number | null;
  /** Null: no limit. */
  maxWaiting: number | null;
  /** So many runs of the tenant may be in flight when the new one uses a reserved slot. */
  reserveUpTo: number;
  exact: boolean;
}

/** What becomes of a run when its worker dies. */
export interface Retry {
  maxAttempts: number;
  initialMs: number;
  factor: number;
  maxMs: number;
}

/** The key of a message. */
export interface Key {
  name: string;
  /** The text of the message, if it is not that of the key. */
  content: string | null;
  /** A deleted task: if the key names it, the key counts as new. */
  gone?: string;
}

/** An id that a caller has chosen. It names one task of its owner and agent. */
export interface Alias {
  client: string;
  /** The task that it names so far and that is replaced. Unset: the id is new. */
  previous?: string;
}

/** An event that a writer appends. */
export type Said =
  | { artifact: string; text: string; append: boolean }
  | { state: TaskState; text?: string | undefined };

export interface Arguments {
  // What callers do.
  createTask: {
    tenant: string;
    task: string;
    agent: string;
    owner: string;
    says: string;
    key?: Key | undefined;
    quota?: Quota | undefined;
    retry?: Retry | undefined;
    /** The worker for which the run is claimed at acceptance. */
    claimFor?: string | undefined;
    /** The id that its caller has chosen. */
    alias?: Alias | undefined;
    /** Set if an agent creates it, as a child of its own task. */
    child?: { parent: Attempt; root: string; maxTasks: number } | undefined;
  };
  continueTask: {
    tenant: string;
    task: string;
    agent: string;
    run: string;
    says: string;
    key?: Key | undefined;
    quota?: Quota | undefined;
    retry?: Retry | undefined;
  };
  cancelTask: {
    tenant: string;
    task: string;
    /** Null: of whichever agent. */
    agent: string | null;
    /** Unset: of whichever owner. */
    owner?: string | undefined;
    metadata?: Record<string, string> | undefined;
  };
  readTask: { tenant: string; task: string };
  readEvents: { tenant: string; task: string; after: number; limit: number };
  findKey: { tenant: string; key: Key };
  findAlias: { tenant: string; agent?: string | undefined; owner: string; client: string };
  reserveRedelivery: { tenant: string; run: string; task: string; again: boolean };
  confirmRedelivery: { tenant: string; run: string; task: string };

  // What workers do.
  claimRun: { tenant: string; run: string; worker: string; again: boolean };
  pickUpRun: { tenant: string; run: string; worker: string };
  appendEvents: {
    writer: Attempt;
    /** The head of the log that the writer expects. */
    head: number;
    events: readonly Said[];
    metadata?: Record<string, string> | undefined;
  };
  endTurn: {
    writer: Attempt;
    head: number;
    events: readonly Said[];
    state: TaskState;
    /** Why it failed. */
    error?: string | undefined;
    /** The writer stores the folded artifacts. */
    folds: boolean;
    /** Of a question: the task continues after this time without an answer. */
    wakeInMs?: number | undefined;
  };
  writeJournal: { writer: Attempt; position: number; value: string };
  noteVersion: { writer: Attempt; version: number };
  noteError: { writer: Attempt; crash?: string | undefined };
  giveUp: { writer: Attempt; crash?: string | undefined; runsAlone: boolean };
  heartbeat: { worker: string; leases: readonly Attempt[] };
  returnToQueue: { writer: Attempt; reserveUpTo: number };
  suspend: { writer: Attempt; waitsFor: readonly string[]; forMs?: number | undefined };
  wake: { tenant: string; task: string };
  postpone: { tenant: string; run: string; forMs: number };
  isSuspect: { tenant: string; run: string };
  openChildren: { tenant: string; task: string };
  dispatch: {
    grants: readonly { tenant: string; slots: number; maxInFlight: number | null }[];
    capacity: number;
    reserve: { upTo: number; slots: number };
  };

  // What sweeps do.
  findWork: object;
  reclaimExpired: object;
  failPoisoned: object;
  takeStaleQueued: object;
  wakeDue: object;
  wakeAll: object;
  wakeAsking: object;
  abandonedChildren: object;
  expireTasks: object;
  purgeLogs: object;
  forgetTombstones: object;
  dropKeys: object;

  // What time does.
  leaseRunsOut: { tenant: string; run: string };
  pauseEnds: { tenant: string; run: string };
  answerTimeEnds: { tenant: string; task: string };
  queueLoses: { tenant: string; run: string };
  keyExpires: { tenant: string; key: string };
  taskGrowsOld: { tenant: string; task: string };
  tombstoneGrowsOld: { tenant: string; task: string };
}

export type Verb = keyof Arguments;
export type Operation = { [V in Verb]: { verb: V } & Arguments[V] }[Verb];

/** What an operation answers, as JSON. */
export type Answer = unknown;

/** All that is stored, by kind and name. */
export type Snapshot = Record<string, Record<string, unknown>>;

/** An operation in one line, for people. */
export function lineOf({ verb, ...args }: Operation): string {
  const text = (value: unknown): string => {
    if (Array.isArray(value)) return `[${value.map(text).join(', ')}]`;
    if (typeof value !== 'object' || value === null) return String(value);
    if ('run' in value && 'attempt' in value) return `${String(value.run)} attempt ${String(value.attempt)}`;
    return `{${fields(value)}}`;
  };
  const fields = (value: object): string =>
    Object.entries(value)
      .filter(([, field]) => field !== undefined)
      .map(([name, field]) => `${name} ${text(field)}`)
      .join(', ');
  return `${verb} ${fields(args)}`.trim();
}
