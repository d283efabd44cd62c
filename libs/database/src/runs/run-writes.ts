import { clock } from '@baton/telemetry';
import { endsTurn, type EventPayload, Message, TaskState, TaskStatus } from '@baton/a2a';
import type { QueryResultRow } from 'pg';
import type { Database, Statement, Values } from '../connection/database.js';
import { byTenant, GroupCommit } from '../connection/group-commit.js';
import { isLockTimeout, plainText } from '../connection/transient.js';
import type { RunKey } from '../dispatch/run-key.js';
import type { AppendBatch, ClaimedRun } from '../tasks/records.js';
import { logRows, type NewLogRow } from '../log/log-rows.js';
import { artifactKey } from '../tasks/task-content.js';
import {
  artifactsJson,
  INLINE_BYTES,
  type NewStatus,
  statusEvent,
  statusJson,
  statusNow,
} from '../tasks/task-row.js';
import {
  APPEND,
  type AppendedRow,
  CLAIM,
  type ClaimedRow,
  type ClaimedTaskRow,
  PICK_UP,
  NOTE_AGENT_VERSIONS,
  WAIT_SHORTLY,
} from './run-sql.js';

/** Maximum number of claims and batches of one transaction. */
const MAX_GROUP = 64;
/** Events and artifacts of one transaction, in characters. */
const MAX_GROUP_CHARS = 1024 * 1024;
/** Of a write that shares its transaction with other tenants. They would wait for a larger one. */
const MAX_SHARED_CHARS = 32 * 1024;

/** Writes of a tenant that wait for locks at the same time. Each has a connection, and other tenants need some, too. */
const MAX_ALONE = 4;

/** A worker's claim of a run. */
interface NewClaim {
  tenantId: string;
  runId: string;
  workerId: string;
  leaseMs: number;
  /** The answer to this worker's claim was lost: if the claim succeeded, it succeeds again. */
  again: boolean;
}

/** A run that was claimed for this worker as it was made. */
interface NewPickUp extends Pick<NewClaim, 'tenantId' | 'runId' | 'workerId'> {
  /** How long its lease must last. */
  leastMs: number;
}

/** A run that was claimed. */
export interface Claimed {
  attempt: number;
  workingEvent: ClaimedRun['workingEvent'];
  /** The task, if it is new and its message small. */
  task: ClaimedTaskRow | undefined;
}

/** A batch as it is stored. */
interface NewBatch extends RunKey {
  head: number;
  /** How many events it has. */
  count: number;
  rows: readonly NewLogRow[];
  /** The bytes of its rows. */
  bytes: number;
  /** Positions, from 1, of events that replace their artifact. */
  starts: readonly { position: number; artifact: string }[];
  /** Positions, from 1, of events that say a message; as JSON. */
  said: readonly { position: number; message: string }[];
  /** The last status of the batch. */
  status: TaskStatus | undefined;
  /** Texts to merge into the task, as JSON. */
  metadata: string | undefined;
  end:
    | { artifacts: string | undefined; outcome: string | null; runState: string; error?: string }
    | undefined;
}

/** Which version of its agent an attempt runs. */
interface NewVersion extends RunKey {
  version: number;
}

type Write =
  | { claim: NewClaim; pickUp?: never; batch?: never; version?: never }
  | { pickUp: NewPickUp; claim?: never; batch?: never; version?: never }
  | { batch: NewBatch; claim?: never; pickUp?: never; version?: never }
  | { version: NewVersion; claim?: never; pickUp?: never; batch?: never };
/** Nothing: it was refused. */
type Written = { claimed?: Claimed; appended?: AppendedRow };
/** Or it was written in a transaction of its own. */
type Outcome = Written | { alone: Promise<Written> };

/**
 * Claims, looks at runs that are claimed already, appends and versions of agents. Those that come while a transaction is under
 * way go together in the next one, each tenant's in its own scope. Each is judged on its own: whether the attempt is current, the
 * task not terminal and the head as expected.
 */
export class RunWrites {
  private readonly groups: GroupCommit<Write, Outcome>;
  /** Writes that wait for a lock, each in a transaction of its own. */
  private readonly alone = new GroupCommit<Write, Written>((writes) => this.write(writes), {
    maxItems: 1,
    maxFlushes: MAX_ALONE,
  });

  constructor(private readonly database: Pick<Database, 'tenantsQueries' | 'prepare'>) {
    this.groups = new GroupCommit((writes) => this.flush(writes), {
      maxItems: MAX_GROUP,
      maxWeight: MAX_GROUP_CHARS,
      weigh: charsOf,
      shares: (write) => !isHeavy(write),
      tenantOf,
      // A statement changes a row once.
      identify: (write) => `${tenantOf(write)} ${subjectOf(write)}`,
    });
  }

  /** Has connections ready for the first runs. */
  prepare(): Promise<void> {
    const working = statusNow(TaskState.TASK_STATE_WORKING);
    return this.database.prepare((tenantId) => [
      [WAIT_SHORTLY, []],
      claimStatement(tenantId, [], working),
      pickUpStatement([]),
      appendStatement(tenantId, []),
    ]);
  }

  /** @returns undefined if another worker has the run, or it is over */
  async claim(claim: NewClaim): Promise<Claimed | undefined> {
    return (await this.submit({ claim })).claimed;
  }

  /** @returns undefined if it is no longer this worker's to begin */
  async pickUp(pickUp: NewPickUp): Promise<Claimed | undefined> {
    return (await this.submit({ pickUp })).claimed;
  }

  /** @returns undefined if the batch was refused */
  async append(batch: NewBatch): Promise<AppendedRow | undefined> {
    return (await this.submit({ batch })).appended;
  }

  async noteVersion(version: NewVersion): Promise<void> {
    await this.submit({ version });
  }

  private async submit(write: Write): Promise<Written> {
    const tenantId = tenantOf(write);
    const outcome = await this.groups.submit(isHeavy(write) ? `${tenantId} heavy` : tenantId, write);
    return 'alone' in outcome ? outcome.alone : outcome;
  }

  private async flush(writes: readonly Write[]): Promise<Outcome[]> {
    try {
      return await this.write(writes);
    } catch (error) {
      if (writes.length === 1 || !isLockTimeout(error) || byTenant(writes, tenantOf).length > 1) throw error;
      // Not awaited: only the run waits that the lock is about.
      return writes.map((write) => ({ alone: this.alone.submit(tenantOf(write), write) }));
    }
  }

  /** One transaction, in which the writes of each tenant are in its scope. */
  private async write(writes: readonly Write[]): Promise<Written[]> {
    const working = statusNow(TaskState.TASK_STATE_WORKING);
    const tenants = byTenant(writes, tenantOf).map(([tenantId, its]) => ({
      tenantId,
      its,
      calls: statementsOf(tenantId, its, working),
    }));
    const [only, ...others] = tenants;
    if (writes.length > 1 && others.length === 0) only?.calls.unshift([WAIT_SHORTLY, []]);
    const answers = await this.database.tenantsQueries(
      tenants.map(({ tenantId, calls }) => [tenantId, calls]),
    );
    const written = new Map<Write, Written>();
    for (const [i, { its, calls }] of tenants.entries()) {
      const rowsOf = <Row extends QueryResultRow>(statement: Statement): Row[] =>
        (answers[i]?.[calls.findIndex(([called]) => called === statement)] ?? []) as Row[];
      const rows = [...rowsOf<ClaimedRow>(CLAIM), ...rowsOf<ClaimedRow>(PICK_UP)];
      const claimed = new Map(rows.map((row) => [row.run_id, row]));
      const appended = new Map(rowsOf<AppendedRow>(APPEND).map((row) => [row.id, row]));
      for (const write of its) {
        const { claim, pickUp, batch } = write;
        const { runId } = claim ?? pickUp ?? {};
        const row = runId === undefined ? undefined : claimed.get(runId);
        if (row) written.set(write, { claimed: claimedOf(row, working, claim !== undefined) });
        const appendedRow = batch && appended.get(batch.taskId);
        if (appendedRow) written.set(write, { appended: appendedRow });
      }
    }
    return writes.map((write) => written.get(write) ?? {});
  }
}

const charsOf = ({ batch }: Write): number => (batch ? batch.bytes + (batch.end?.artifacts?.length ?? 0) : 0);
const isHeavy = (write: Write): boolean => charsOf(write) > MAX_SHARED_CHARS;
const tenantOf = ({ claim, pickUp, batch, version }: Write): string =>
  (claim ?? pickUp ?? batch ?? version).tenantId;
const subjectOf = ({ claim, pickUp, batch, version }: Write): string =>
  (claim ?? pickUp)?.runId ?? batch?.taskId ?? `version of ${version?.runId}`;

/** First the claims: an older attempt of the same run is refused then. */
function statementsOf(tenantId: string, writes: readonly Write[], working: NewStatus): [Statement, Values][] {
  const claims = writes.flatMap(({ claim }) => claim ?? []);
  const pickUps = writes.flatMap(({ pickUp }) => pickUp ?? []);
  const batches = writes.flatMap(({ batch }) => batch ?? []);
  const versions = writes.flatMap(({ version }) => version ?? []);
  return [
    ...(claims.length > 0 ? [claimStatement(tenantId, claims, working)] : []),
    ...(pickUps.length > 0 ? [pickUpStatement(pickUps)] : []),
    ...(batches.length > 0 ? [appendStatement(tenantId, batches)] : []),
    ...(versions.length > 0 ? [versionStatement(versions)] : []),
  ];
}

/** Sorted: two workers that claim the same runs do not wait for each other. */
function claimStatement(
  tenantId: string,
  claims: readonly NewClaim[],
  working: NewStatus,
): [Statement, Values] {
  const sorted = claims.toSorted((one, other) => (one.runId < other.runId ? -1 : 1));
  const values = [
    sorted.map(() => tenantId),
    sorted.map(({ runId }) => runId),
    sorted.map(({ workerId }) => workerId),
    sorted.map(({ leaseMs }) => leaseMs),
    sorted.map(({ again }) => again),
    working.json,
    working.at,
  ];
  return [CLAIM, values];
}

const pickUpStatement = (pickUps: readonly NewPickUp[]): [Statement, Values] => [
  PICK_UP,
  [
    pickUps.map(({ tenantId }) => tenantId),
    pickUps.map(({ runId }) => runId),
    pickUps.map(({ workerId }) => workerId),
    pickUps.map(({ leastMs }) => leastMs),
  ],
];

const versionStatement = (versions: readonly NewVersion[]): [Statement, Values] => [
  NOTE_AGENT_VERSIONS,
  [
    versions.map(({ tenantId }) => tenantId),
    versions.map(({ runId }) => runId),
    versions.map(({ attempt }) => attempt),
    versions.map(({ version }) => version),
  ],
];

/** @param isAppended whether the `working` event is in the log, if there is one */
function claimedOf(row: ClaimedRow, { status, at }: NewStatus, isAppended: boolean): Claimed {
  const { attempt, started, last_sequence: sequence, message } = row;
  const payload = statusEvent(row.id, row.context_id, status);
  // Field by field: two spreads of so many members take five times as long as this, and a tenth of all memory of a turn.
  const task = message && {
    id: row.id,
    agent_id: row.agent_id,
    owner: row.owner,
    context_id: row.context_id,
    state: TaskState.TASK_STATE_WORKING,
    status_at: at,
    status: TaskStatus.toJSON(status) as object,
    metadata: row.metadata,
    metadata_cut: row.metadata_cut,
    last_sequence: sequence,
    outcome: null,
    size: row.size,
    history: { messages: [message], from: 1, bytes: row.message_bytes, rows: 1 },
    artifacts: [],
    artifacts_bytes: 0,
    artifacts_sequence: 1,
    replaced: false,
    tail: { events: [], to: null, bytes: null, rows: 0 },
    message,
    request: row.request,
    start_sequence: row.start_sequence,
    extensions: row.extensions,
    traceparent: row.traceparent,
    parent_task_id: row.parent_task_id,
    push_configs: row.push_configs,
    error_detail: row.error_detail,
    waited_seconds: row.waited_seconds,
  };
  return {
    attempt,
    workingEvent: started ? { sequence, payload, isAppended } : null,
    task: task ?? undefined,
  };
}

/** The statement that appends these batches. Each is of another task. */
export function appendStatement(tenantId: string, batches: readonly NewBatch[]): [Statement, Values] {
  /** What the batches have of something, each with the number of its batch, from 1. */
  const ofAll = <T extends object>(part: (batch: NewBatch) => readonly T[]): (T & { batch: number })[] =>
    batches.flatMap((batch, i) => part(batch).map((item) => ({ ...item, batch: i + 1 })));
  const rows = ofAll((batch) => batch.rows);
  const starts = ofAll((batch) => batch.starts);
  const said = ofAll((batch) => batch.said);
  const ofEach = <T>(column: (batch: NewBatch) => T): T[] => batches.map(column);
  const values = [
    ofEach(() => tenantId),
    ofEach(({ taskId }) => taskId),
    ofEach(({ runId }) => runId),
    ofEach(({ attempt }) => attempt),
    ofEach(({ head }) => head),
    ofEach(({ count }) => count),
    ofEach(({ bytes }) => bytes),
    ofEach(({ status }) => status?.state),
    ofEach(({ status }) => status && statusJson(status, statusTime(status))),
    ofEach(({ status }) => status && statusTime(status)),
    ofEach(({ metadata }) => metadata),
    ofEach(({ end }) => end !== undefined),
    ofEach(({ end }) => end?.artifacts),
    ofEach(({ end }) => end?.outcome),
    ofEach(({ end }) => end?.runState),
    ofEach(({ end }) => end?.error),
    `[${rows.map(({ json }) => json).join(',')}]`,
    rows.map(({ batch }) => batch),
    rows.map(({ last }) => last),
    rows.map(({ first }) => first),
    rows.map(({ artifact }) => artifact),
    starts.map(({ batch }) => batch),
    starts.map(({ position }) => position),
    starts.map(({ artifact }) => artifact),
    said.map(({ batch }) => batch),
    said.map(({ position }) => position),
    said.map(({ message }) => message),
  ];
  return [APPEND, values];
}

/**
 * A batch as it is stored. Throws on one that contradicts itself.
 * @param metadata of the task from now on, as JSON; unset = as they are
 */
export function newBatch(
  key: RunKey,
  { events, end, afterSequence, contextId }: AppendBatch,
  metadata?: string,
): NewBatch {
  const { tenantId, taskId, runId, attempt } = key;
  const keys = keysOf(events);
  const rows = logRows(
    events.map(({ json }, i) => ({ json, artifact: keys[i] })),
    contextId === undefined ? undefined : { taskId, contextId },
  );
  const statuses = events.map(({ payload }) => statusOf(payload));
  checkEnd(statuses, end?.state);
  const artifacts = end?.artifacts && artifactsJson(end.artifacts);
  const isSmall = artifacts !== undefined && Buffer.byteLength(artifacts) <= INLINE_BYTES;
  return {
    tenantId,
    taskId,
    runId,
    attempt,
    head: afterSequence,
    count: events.length,
    rows,
    bytes: rows.reduce((sum, { bytes }) => sum + bytes, 0),
    starts: events.flatMap(({ isFirst, payload }, i) => {
      const [position, artifact] = [i + 1, keys[i]];
      const replaces = payload.$case === 'artifactUpdate' && !payload.value.append && !isFirst;
      return replaces && artifact !== undefined ? [{ position, artifact }] : [];
    }),
    said: statuses.flatMap((status, i) => {
      const message = status?.message;
      return message ? [{ position: i + 1, message: JSON.stringify(Message.toJSON(message)) }] : [];
    }),
    metadata,
    status: statuses.findLast((status) => status !== undefined),
    end: end && {
      artifacts: isSmall ? artifacts : undefined,
      outcome: end.outcome,
      runState: runState(end.state),
      ...(end.error !== undefined && { error: plainText(end.error) }),
    },
  };
}

/** The key of the artifact that each event belongs to. */
function keysOf(events: AppendBatch['events']): (string | undefined)[] {
  const keys = new Map<string, string>();
  return events.map(({ payload }) => {
    if (payload.$case !== 'artifactUpdate' || !payload.value.artifact) return undefined;
    const { artifactId } = payload.value.artifact;
    const key = keys.get(artifactId) ?? artifactKey(artifactId);
    keys.set(artifactId, key);
    return key;
  });
}

function statusOf(payload: EventPayload): TaskStatus | undefined {
  return payload.$case === 'artifactUpdate' ? undefined : payload.value.status;
}

/** Only the last event may have a state that ends the turn, and the batch must declare it. */
function checkEnd(statuses: readonly (TaskStatus | undefined)[], end: TaskState | undefined): void {
  const ending = statuses.findIndex((status) => status && endsTurn(status.state));
  const expected = end === undefined ? -1 : statuses.length - 1;
  if (ending !== expected || (end !== undefined && statuses[ending]?.state !== end)) {
    throw new TypeError('A turn ends with the last event of a batch, and the batch must say so');
  }
}

function statusTime({ timestamp }: TaskStatus): string {
  const at = new Date(timestamp ?? clock.now());
  return (Number.isNaN(at.getTime()) ? clock.date() : at).toISOString();
}

function runState(state: TaskState): string {
  if (state === TaskState.TASK_STATE_FAILED) return 'failed';
  return state === TaskState.TASK_STATE_CANCELED ? 'canceled' : 'succeeded';
}
