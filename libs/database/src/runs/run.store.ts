import { detailsFromJson, isUuid, Message } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import type { QueryResultRow } from 'pg';
import { Database } from '../connection/database.js';
import { isTransient } from '../connection/transient.js';
import { type RunKey, type RunToEnqueue, type RunToEnqueueRow, runToEnqueueOf } from '../dispatch/run-key.js';
import type { AppendBatch, AppendResult, ClaimedRun, Crashes, PoisonedRun } from '../tasks/records.js';
import { ReadBudget } from '../tasks/task-content.js';
import { TaskReader } from '../tasks/task-reader.js';
import { INLINE_BYTES, type TaskRow } from '../tasks/task-row.js';
import { GET, type MetadataRow, READ_METADATA } from '../tasks/task-sql.js';
import { failPoisonedRun } from './poisoned-run.js';
import * as sql from './run-sql.js';
import { appendStatement, type Claimed, newBatch, RunWrites } from './run-writes.js';

/** Metadata grow with every status that has some. */
const MAX_METADATA_CHARS = 4 * 1024 * 1024;
/** Unless somebody says otherwise, in bytes. */
const MAX_READ_BYTES = 4 * 1024 * 1024;

/** The runs that have not ended. */
export interface ActiveRunCounts {
  /** Of all tenants, by state: `waiting` for a dispatch slot, `queued` for a worker, `running`, `suspended`. */
  states: Record<
    string,
    { runs: number; /** Since the oldest was accepted; 0 for suspended ones. */ oldestSeconds: number }
  >;
  /** Of the tenants that have the most, by slug. */
  tenants: { tenant: string; state: string; runs: number }[];
}

/** Runs: claim, append, sweep. Their leases are kept by `LeaseKeeper`. */
@Injectable()
export class RunStore {
  private readonly reader: TaskReader;
  private readonly writes: RunWrites;

  /** @param readBytes most that is read of a task for one run, in bytes of JSON */
  constructor(
    private readonly database: Database,
    private readonly readBytes = MAX_READ_BYTES,
  ) {
    this.reader = new TaskReader(database);
    this.writes = new RunWrites(database);
  }

  /** Has connections ready for the first runs of this process. Writes nothing. */
  prepare(): Promise<void> {
    return this.writes.prepare();
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
    const claimed = await this.writes.claim({ tenantId, runId, workerId, leaseMs, again });
    const task = claimed?.task ?? (claimed && (await this.readClaimed(tenantId, runId, workerId)));
    return claimed && task && this.claimedRun({ tenantId, runId }, claimed, task);
  }

  /**
   * A run that was claimed for this worker as it was made (`NewTask.claimFor`), in the form of `claim`. Undefined: it is over, was
   * canceled, has been begun, or its lease has less than `leastMs` left.
   */
  async pickUp(
    tenantId: string,
    runId: string,
    workerId: string,
    leastMs: number,
  ): Promise<ClaimedRun | undefined> {
    if (!isUuid(tenantId) || !isUuid(runId)) return undefined;
    const claimed = await this.writes.pickUp({ tenantId, runId, workerId, leastMs });
    return claimed?.task && this.claimedRun({ tenantId, runId }, claimed, claimed.task);
  }

  private async claimedRun(
    { tenantId, runId }: { tenantId: string; runId: string },
    { attempt, workingEvent }: Claimed,
    task: sql.ClaimedTaskRow,
  ): Promise<ClaimedRun> {
    const content = await this.contentFor(tenantId, task, attempt);
    const { owner, snapshot, artifactsAtStart, artifactsAreWhole } = content;
    return {
      tenantId,
      taskId: task.id,
      runId,
      attempt,
      agentId: task.agent_id,
      owner,
      snapshot,
      artifactsAtStart,
      artifactsAreWhole,
      message: Message.fromJSON(task.message),
      details: detailsFromJson(task.request),
      startSequence: task.start_sequence,
      logged: { events: task.last_sequence, bytes: task.size },
      extensions: task.extensions ?? [],
      traceparent: task.traceparent,
      parentTaskId: task.parent_task_id,
      hasPushConfigs: task.push_configs > 0,
      runsAlone: task.error_detail?.runsAlone ?? false,
      waitedSeconds: task.waited_seconds,
      workingEvent,
    };
  }

  /**
   * Append a batch in one statement: events, history, task and, at the end of the turn, the run. Refused if
   * the attempt is not current, the task is terminal or the log has moved on; then nothing was written.
   */
  async append(key: RunKey, batch: AppendBatch): Promise<AppendResult> {
    const row = batch.metadata
      ? await this.appendWithMetadata(key, batch)
      : await this.writes.append(newBatch(key, batch));
    if (!row) return { ok: false };
    const { child_tasks: children, push_configs: configs } = row;
    const end = batch.end ? { hasChildren: children > 0 } : {};
    const wakes = configs > 0 ? { hasPushConfigs: true } : {};
    return { ok: true, firstSequence: batch.afterSequence + 1, ...wakes, ...end };
  }

  /**
   * Return a run to the queue (shutdown). This does not count as a crash. The attempt number stays, because a fencing
   * token never goes back. Only expired leases count against a run.
   * @returns the run, which must be enqueued now. Undefined: the attempt is over
   */
  async returnToQueue({ tenantId, runId, attempt }: RunKey): Promise<RunToEnqueue | undefined> {
    const values = [tenantId, runId, attempt];
    const [row] = await this.database.tenantQuery<RunToEnqueueRow>(tenantId, sql.RETURN_TO_QUEUE, values);
    return row && runToEnqueueOf(row);
  }

  /** Which version of its agent this attempt runs. */
  async noteAgentVersion({ tenantId, taskId, runId, attempt }: RunKey, version: number): Promise<void> {
    await this.writes.noteVersion({ tenantId, runId, attempt, taskId, version });
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

  /** The newest runs of a task, at most 100, the newest first. */
  async ofTask(tenantId: string, taskId: string): Promise<sql.RunRecord[]> {
    if (!isUuid(taskId)) return [];
    return this.database.tenantQuery<sql.RunRecord & QueryResultRow>(tenantId, sql.RUNS_OF_TASK, [
      tenantId,
      taskId,
    ]);
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
    const rows = await this.database.systemQuery<RunToEnqueueRow & { waits: boolean }>(sql.RECLAIM_EXPIRED, [
      limit,
      expiredAt,
    ]);
    return rows.filter(({ waits }) => !waits).map(runToEnqueueOf);
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
    const rows = await this.database.systemQuery<RunToEnqueueRow>(sql.TAKE_STALE_QUEUED, [
      olderThanMs,
      limit,
    ]);
    return rows.map(runToEnqueueOf);
  }

  /**
   * The runs that have not ended, for metrics. Finished ones are not counted: there is no end to them.
   * @param maxTenants how many tenants are named: those with the most runs
   */
  async countActive(maxTenants: number): Promise<ActiveRunCounts> {
    const rows = await this.database.systemQuery<sql.ActiveRow>(sql.COUNT_ACTIVE, [maxTenants]);
    const none = { runs: 0, oldestSeconds: 0 };
    const counts: ActiveRunCounts = {
      states: { waiting: none, queued: none, running: none, suspended: none },
      tenants: [],
    };
    for (const { tenant, state, runs, oldest } of rows) {
      if (tenant !== null) counts.tenants.push({ tenant, state, runs });
      else counts.states[state] = { runs, oldestSeconds: oldest ?? 0 };
    }
    return counts;
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

  /** The metadata are merged here and not by Postgres, whose JSON functions refuse U+0000. */
  private async appendWithMetadata(key: RunKey, batch: AppendBatch): Promise<sql.AppendedRow | undefined> {
    return this.database.inTenant(key.tenantId, async (transaction) => {
      const [row] = await transaction.query<MetadataRow>(READ_METADATA, [key.tenantId, key.taskId]);
      const merged = JSON.stringify({ ...row?.metadata, ...batch.metadata });
      if (merged.length > MAX_METADATA_CHARS) {
        throw new RangeError(`The metadata of a task may be ${MAX_METADATA_CHARS} characters of JSON`);
      }
      const [appended] = await transaction.query<sql.AppendedRow>(
        ...appendStatement(key.tenantId, [newBatch(key, batch, merged)]),
      );
      return appended;
    });
  }

  private async readClaimed(
    tenantId: string,
    runId: string,
    workerId: string,
  ): Promise<sql.ClaimedTaskRow | undefined> {
    const values = [tenantId, runId, workerId];
    const [row] = await this.database.tenantQuery<sql.ClaimedTaskRow>(tenantId, sql.READ_CLAIMED, values);
    return row;
  }
}

/** U+0000 and lone surrogates would make Postgres refuse to read it. */
const errorJson = (error: sql.RunError): string =>
  JSON.stringify(error, (_, value: unknown) =>
    typeof value === 'string' ? value.replace(/\0|\p{Surrogate}/gu, '\uFFFD') : value,
  );
