import { endsTurn, type EventPayload, isUuid, Message, TaskState, TaskStatus } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { Database } from '../connection/database.js';
import { isTransient } from '../connection/transient.js';
import { type RunKey, type RunRow, type RunToEnqueue, runOf } from '../dispatch/run-key.js';
import type { AppendBatch, AppendResult, ClaimedRun, Crashes, PoisonedRun } from '../tasks/records.js';
import { artifactKey, ReadBudget } from '../tasks/task-content.js';
import { TaskReader } from '../tasks/task-reader.js';
import { artifactsJson, INLINE_BYTES, statusEvent, statusNow, type TaskRow } from '../tasks/task-row.js';
import { GET, type MetadataRow, READ_METADATA } from '../tasks/task-sql.js';
import { failPoisonedRun } from './poisoned-run.js';
import * as sql from './run-sql.js';

/** Metadata grow with every status that has some. */
const MAX_METADATA_CHARS = 4 * 1024 * 1024;
/** Unless somebody says otherwise, in bytes. */
const MAX_READ_BYTES = 4 * 1024 * 1024;

/** Runs: claim, append, sweep. Their leases are kept by `LeaseKeeper`. */
@Injectable()
export class RunStore {
  private readonly reader: TaskReader;

  /** @param readBytes most that is read of a task for one run, in bytes of JSON */
  constructor(
    private readonly database: Database,
    private readonly readBytes = MAX_READ_BYTES,
  ) {
    this.reader = new TaskReader(database);
  }

  /**
   * Compare-and-set: queued → running, attempt + 1. Undefined: another worker has it, or it is over. Then reads the
   * task's content, within the budget.
   * @param again the answer to this worker's claim was lost: if the claim succeeded, it succeeds again
   */
  async claim(
    tenantId: string,
    runId: string,
    workerId: string,
    leaseMs: number,
    again = false,
  ): Promise<ClaimedRun | undefined> {
    if (!isUuid(tenantId) || !isUuid(runId)) return undefined;
    const working = statusNow(TaskState.TASK_STATE_WORKING);
    const [[claimed] = [], [row] = []] = await this.database.tenantQueries(tenantId, [
      [sql.CLAIM, [tenantId, runId, workerId, leaseMs, working.json, working.at, again]],
      [sql.READ_CLAIMED, [tenantId, runId, workerId]],
    ]);
    if (!claimed || !row) return undefined;
    const { attempt, started, sequence } = claimed as sql.ClaimRow;
    const task = row as sql.ClaimedTaskRow;
    const content = await this.contentFor(tenantId, task, attempt);
    const payload = statusEvent(task.id, task.context_id, working.status);
    return {
      ...{ tenantId, taskId: task.id, runId, attempt, agentId: task.agent_id },
      ...content,
      message: Message.fromJSON(task.message),
      startSequence: task.start_sequence,
      logged: { events: task.last_sequence, bytes: task.size },
      extensions: task.extensions ?? [],
      traceparent: task.traceparent,
      parentTaskId: task.parent_task_id,
      hasPushConfigs: task.push_configs > 0,
      runsAlone: task.error_detail?.runsAlone ?? false,
      waitedSeconds: task.waited_seconds,
      workingEvent: started ? { sequence, payload } : null,
    };
  }

  /**
   * Append a batch in one statement: events, history, task and, at the end of the turn, the run. Refused if
   * the attempt is not current, the task is terminal or the log has moved on; then nothing was written.
   */
  async append(key: RunKey, batch: AppendBatch): Promise<AppendResult> {
    const rows = batch.metadata
      ? await this.appendWithMetadata(key, batch)
      : await this.appendEvents(key, batch);
    const [row] = rows;
    if (!row) return { ok: false };
    const { child_tasks: children, push_configs: configs } = row;
    const end = children === undefined ? {} : { hasChildren: children > 0 };
    const wakes = configs > 0 ? { hasPushConfigs: true } : {};
    return { ok: true, firstSequence: batch.afterSequence + 1, ...wakes, ...end };
  }

  /**
   * Return a run to the queue (shutdown). This does not count as a crash. The attempt number stays, because a fencing
   * token never goes back. Only expired leases count against a run.
   */
  async returnToQueue({ tenantId, runId, attempt }: RunKey): Promise<boolean> {
    const rows = await this.database.tenantQuery(tenantId, sql.RETURN_TO_QUEUE, [tenantId, runId, attempt]);
    return rows.length > 0;
  }

  /** Which version of its agent this attempt runs. */
  async noteAgentVersion({ tenantId, runId, attempt }: RunKey, version: number): Promise<void> {
    await this.database.tenantQuery(tenantId, sql.NOTE_AGENT_VERSION, [tenantId, runId, attempt, version]);
  }

  /**
   * Whether the run is in quarantine. Its workers have died. If another run is to blame, this one must not die with it
   * again.
   */
  async isSuspect(tenantId: string, runId: string): Promise<boolean> {
    if (!isUuid(tenantId) || !isUuid(runId)) return false;
    const rows = await this.database.tenantQuery(tenantId, sql.IS_SUSPECT, [tenantId, runId]);
    return rows.length > 0;
  }

  /** Take a run off the queue. It can get a slot again after `forMs`. */
  async postpone(tenantId: string, runId: string, forMs: number): Promise<void> {
    await this.database.tenantQuery(tenantId, sql.POSTPONE, [tenantId, runId, forMs]);
  }

  /** Keep what is known of an error in the agent's code. */
  async noteError({ tenantId, runId, attempt }: RunKey, error: sql.RunError): Promise<void> {
    const json = errorJson(error);
    await this.database.tenantQuery(tenantId, sql.NOTE_ERROR, [tenantId, runId, attempt, json]);
  }

  /**
   * The agent's process has died with this attempt in it. It counts like an attempt whose worker died: the sweeper
   * queues the run again, or fails it when its attempts are used up.
   */
  async giveUp({ tenantId, runId, attempt }: RunKey, error: sql.RunError): Promise<void> {
    const json = errorJson(error);
    await this.database.tenantQuery(tenantId, sql.GIVE_UP, [tenantId, runId, attempt, json]);
  }

  /** The last error in an agent's code that a task has had. */
  async lastError(tenantId: string, taskId: string): Promise<sql.RunErrorRecord | undefined> {
    if (!isUuid(taskId)) return undefined;
    const [row] = await this.database.tenantQuery<sql.ErrorRow>(tenantId, sql.LAST_ERROR, [tenantId, taskId]);
    return row && { runId: row.run_id, ...row.error_detail };
  }

  /**
   * What there is to sweep. Rejects when Postgres can't commit to the disk.
   * @param staleQueuedRunMs age at which a run on the queue counts as lost
   */
  async lookForWork(staleQueuedRunMs: number): Promise<sql.SweepFindings> {
    const values = [staleQueuedRunMs];
    const [row] = await this.database.systemQuery<sql.SweepFindings & QueryResultRow>(sql.LOOK, values);
    if (!row) throw new Error('Postgres gave no answer');
    return row;
  }

  /**
   * Leases that had run out: back to queued if attempts remain: at once after the first crash of a
   * run without a backoff, else after a pause.
   * @param expiredAt by the clock of Postgres, from `lookForWork`
   * @returns those that must be enqueued now; the others wait in Postgres
   */
  async reclaimExpired(limit: number, expiredAt: string): Promise<RunToEnqueue[]> {
    const rows = await this.database.systemQuery<RunRow & { waits: boolean }>(sql.RECLAIM_EXPIRED, [
      limit,
      expiredAt,
    ]);
    return rows.filter(({ waits }) => !waits).map(runOf);
  }

  /**
   * Fails runs without attempts left whose lease has expired, and their tasks.
   * @param expiredAt by the clock of Postgres, from `lookForWork`
   * @param explain the text that callers and the dead letter get
   */
  async failPoisoned(
    limit: number,
    expiredAt: string,
    explain: (crashes: Crashes) => string,
  ): Promise<PoisonedRun[]> {
    return this.database.inSystem(async (transaction) => {
      const found = await transaction.query<sql.PoisonedRow>(sql.FIND_POISONED, [limit, expiredAt]);
      const failed = await Promise.all(found.map((row) => failPoisonedRun(transaction, row, explain)));
      return failed.filter((run) => run !== undefined);
    });
  }

  /** Fold the artifacts of a task that ended without its writer. Never rejects. */
  async keepArtifacts(tenantId: string, taskId: string): Promise<void> {
    try {
      const [row] = await this.database.tenantQuery<TaskRow>(tenantId, GET, [tenantId, taskId, 0]);
      const budget = new ReadBudget(2 * INLINE_BYTES);
      const stored = row && (await this.reader.read(tenantId, row, { historyLength: 0, budget }));
      if (stored) await this.reader.keepArtifacts(tenantId, stored);
    } catch {
      // Readers of the task fold them instead.
    }
  }

  /** Queued runs not enqueued in the last `olderThanMs`; marks them as enqueued now. */
  async takeStaleQueued(olderThanMs: number, limit: number): Promise<RunToEnqueue[]> {
    const rows = await this.database.systemQuery<RunRow>(sql.TAKE_STALE_QUEUED, [olderThanMs, limit]);
    return rows.map(runOf);
  }

  /** Number of waiting, queued (on the queue), running and suspended runs, for metrics. Finished ones are not counted: there is no end to them. */
  async countByState(): Promise<Record<string, number>> {
    const rows = await this.database.systemQuery<{ state: string; count: number }>(sql.COUNT_ACTIVE, []);
    return { queued: 0, running: 0, ...Object.fromEntries(rows.map(({ state, count }) => [state, count])) };
  }

  /** Reads the task of a claimed run. The claim holds even if this fails. */
  private async contentFor(
    tenantId: string,
    row: sql.ClaimedTaskRow,
    attempt: number,
  ): Promise<Pick<ClaimedRun, 'owner' | 'snapshot' | 'artifactsAtStart' | 'artifactsAreWhole'>> {
    const budget = new ReadBudget(this.readBytes);
    const read = await this.reader.read(tenantId, row, { budget }).catch((error: unknown) => {
      if (isTransient(error)) throw error;
      return undefined;
    });
    const snapshot = read ?? (await this.reader.read(tenantId, row, { budget, rowOnly: true }));
    if (!snapshot) throw new Error('A claimed task is gone');
    const { task, sequence } = snapshot;
    // Output of an earlier attempt is part of the task, but not of the artifacts at the start of the turn.
    const start = { tenantId, taskId: row.id, head: row.start_sequence };
    const snapshotIsWhole = snapshot.truncation?.artifactsUpToEvent === undefined;
    const { artifacts, isWhole } =
      attempt === 1
        ? { artifacts: task.artifacts, isWhole: true }
        : await this.reader.artifactsAt(start, row, new ReadBudget(this.readBytes));
    return {
      owner: snapshot.owner,
      snapshot: { task, sequence },
      artifactsAtStart: artifacts,
      artifactsAreWhole: snapshotIsWhole && isWhole,
    };
  }

  private async appendEvents(key: RunKey, batch: AppendBatch): Promise<sql.AppendedRow[]> {
    const statement = batch.end ? sql.APPEND_END : sql.APPEND;
    return this.database.tenantQuery(key.tenantId, statement, appendValues(key, batch, undefined));
  }

  /** The metadata are merged here and not by Postgres, whose JSON functions refuse U+0000. */
  private async appendWithMetadata(key: RunKey, batch: AppendBatch): Promise<sql.AppendedRow[]> {
    return this.database.inTenant(key.tenantId, async (transaction) => {
      const [row] = await transaction.query<MetadataRow>(READ_METADATA, [key.tenantId, key.taskId]);
      const merged = { ...row?.metadata, ...batch.metadata };
      if (JSON.stringify(merged).length > MAX_METADATA_CHARS) {
        throw new RangeError(`The metadata of a task may be ${MAX_METADATA_CHARS} characters of JSON`);
      }
      const statement = batch.end ? sql.APPEND_END : sql.APPEND;
      return transaction.query(statement, appendValues(key, batch, merged));
    });
  }
}

/** U+0000 and lone surrogates would make Postgres refuse to read it. */
const errorJson = (error: sql.RunError): string =>
  JSON.stringify(error, (_, value: unknown) =>
    typeof value === 'string' ? value.replace(/\0|\p{Surrogate}/gu, '\uFFFD') : value,
  );

/** Events that belong to no artifact. */
const NO_ARTIFACT = '0';

/** The values of `APPEND`, or of `APPEND_END` if the batch ends the turn. Throws on a batch that contradicts itself. */
function appendValues(key: RunKey, batch: AppendBatch, metadata: object | undefined): unknown[] {
  const { events, end, afterSequence } = batch;
  const statuses = events.map(({ payload }) => statusOf(payload));
  const last = statuses.findLast((status) => status !== undefined);
  checkEnd(statuses, end?.state);
  const said = statuses.flatMap((status, i) =>
    status?.message ? [{ position: i + 1, message: status.message }] : [],
  );
  const values = [
    ...[key.tenantId, key.taskId, key.runId, key.attempt, afterSequence],
    ...[events.length, `[${events.map(({ json }) => json).join(',')}]`],
    ...[last?.state, last && JSON.stringify(TaskStatus.toJSON(last)), last && statusTime(last)],
    said.map(({ position }) => position),
    said.map(({ message }) => JSON.stringify(Message.toJSON(message))),
    metadata && JSON.stringify(metadata),
    ...[keysOf(events), startsOf(events)],
  ];
  if (!end) return values;
  const artifacts = end.artifacts && artifactsJson(end.artifacts);
  const small = artifacts !== undefined && Buffer.byteLength(artifacts) <= INLINE_BYTES;
  return [...values, small ? artifacts : null, end.outcome, runState(end.state), plainText(end.error)];
}

/** Which artifact each event belongs to. */
function keysOf(events: AppendBatch['events']): string[] {
  const keys = new Map<string, string>();
  return events.map(({ payload }) => {
    if (payload.$case !== 'artifactUpdate' || !payload.value.artifact) return NO_ARTIFACT;
    const { artifactId } = payload.value.artifact;
    const key = keys.get(artifactId) ?? artifactKey(artifactId);
    keys.set(artifactId, key);
    return key;
  });
}

/** The positions, from 1, of the events that replace their artifact. */
const startsOf = (events: AppendBatch['events']): number[] =>
  events.flatMap(({ payload, isFirst }, i) =>
    payload.$case === 'artifactUpdate' && !payload.value.append && !isFirst ? [i + 1] : [],
  );

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

function statusTime({ timestamp }: TaskStatus): Date {
  const at = new Date(timestamp ?? Date.now());
  return Number.isNaN(at.getTime()) ? new Date() : at;
}

function runState(state: TaskState): string {
  if (state === TaskState.TASK_STATE_FAILED) return 'failed';
  return state === TaskState.TASK_STATE_CANCELED ? 'canceled' : 'succeeded';
}

/** Text columns can't hold U+0000. */
const plainText = (text: string | undefined): string | undefined => text?.replaceAll('\0', '\uFFFD');
