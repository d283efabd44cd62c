import { detailsFromJson, Message, TaskState, TaskStatus } from '@baton/a2a';
import type { Database } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, one, statement } from '../sql/statement.js';
import { isTransient } from '../connection/transient.js';
import { hasState } from '../dispatch/run-conditions.js';
import type { ClaimedRun } from '../tasks/task-records.js';
import { ReadBudget } from '../tasks/read-budget.js';
import { HISTORY_SHARE, TaskReader } from '../tasks/task-reader.js';
import { storedTask, type TaskHead } from '../tasks/stored-task.js';
import {
  metadataColumns,
  type NewStatus,
  statusEvent,
  taskColumns,
  type TaskRow,
} from '../tasks/task-row.js';
import type { RunError } from './run-error.js';

// Three statements give a run to a worker: `CLAIM`, `READ_EAGER_RUNS`, and `READ_CLAIMED` for a task that has more than its first message.
// They select the same columns, and `claimedRun` makes the answer of all of them. They differ in where the content of the task
// comes from: it is the first message, or `TaskReader` reads it.

/** A run that was given to a worker, and its task, as `TASK_COLUMNS` and `runColumns` select them. */
export interface ClaimedRunRow extends TaskHead {
  parent_task_id: string | null;
  push_configs: number;
  start_sequence: number;
  extensions: string[] | null;
  traceparent: string | null;
  error_detail: RunError | null;
  waited_seconds: number;
  /** See `ClaimedRun`. Unset: it did not come with the claim, and is `start_sequence`. */
  base_sequence?: number | null;
  /** The message that the run answers. Null: it did not come with the claim, see `READ_CLAIMED`. */
  message: object | null;
  message_bytes: number | null;
  /** Metadata and configuration of its request. Null: none. */
  request: object | null;
}

/** SQL of a task `t` that has no more content than its first message. */
export const TASK_COLUMNS = `t.id, t.agent_id, t.owner, t.context_id, ${metadataColumns},
  (t.stored_bytes + t.open_bytes)::float8 AS size, t.parent_task_id, t.push_configs`;

/** SQL of a run. @param error SQL of its last error */
export const runColumns = (run: string, error = `${run}.error_detail`): string =>
  `${run}.start_sequence, ${run}.extensions, ${run}.traceparent, ${error} AS error_detail,
  extract(epoch FROM clock_timestamp() - ${run}.created_at)::float8 AS waited_seconds`;

const CLAIMED = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  run_id: ['uuid', ({ runId }) => runId],
  worker_id: ['text', ({ workerId }) => workerId],
} satisfies Inputs<{ tenantId: string; runId: string; workerId: string }>;

/**
 * The task of a run that was claimed. It reads only the beginning of a large task, so that every run can be claimed.
 *
 * The task's id is a value and not a join, so that the index always finds the one row. A plan made and kept while the tables are
 * empty would read all tasks of the tenant at every claim.
 */
export const READ_CLAIMED = statement('run-read-claimed-2', { claimed: one(CLAIMED) }, ({ claimed }) => {
  const tenant = keyOfTenant(claimed.tenant_id);
  return `
SELECT ${taskColumns('NULL', true)}, t.parent_task_id, t.push_configs, ${runColumns('r')},
  r.base_sequence, m.message, NULL AS message_bytes, m.request
FROM runs r, tasks t, LATERAL (
  SELECT message, request FROM task_messages
  WHERE tenant_id = ${tenant} AND task_id = t.id AND sequence = r.start_sequence
  OFFSET 0
) m
WHERE t.tenant_id = ${tenant} AND t.id = (SELECT task_id FROM runs WHERE tenant_id = ${tenant} AND id = ${claimed.run_id})
  AND r.tenant_id = ${tenant} AND r.id = ${claimed.run_id} AND r.worker_id = ${claimed.worker_id} AND ${hasState('running')}`;
});

/** The answer to a claim, or to the read of an eager run. */
export interface Claimed {
  row: ClaimedRunRow;
  attempt: number;
  workingEvent: ClaimedRun['workingEvent'];
  /** The status `working` with which the run begins. */
  working: NewStatus;
}

/**
 * @param started whether the run begins with a `working` event at `row.last_sequence`
 * @param isAppended whether that is in the log
 */
export function claimedOf(
  row: ClaimedRunRow & { attempt: number },
  working: NewStatus,
  started: boolean,
  isAppended: boolean,
): Claimed {
  const { attempt, last_sequence: sequence } = row;
  const payload = statusEvent(row.id, row.context_id, working.status);
  return { row, attempt, working, workingEvent: started ? { sequence, payload, isAppended } : null };
}

type RunOfTenant = Pick<ClaimedRun, 'tenantId' | 'runId'>;
type Content = Pick<ClaimedRun, 'snapshot' | 'artifactsAtStart' | 'artifactsAreWhole'>;

/**
 * The run as its worker gets it.
 * @param readBytes maximum that is read of the task, in bytes of JSON
 * @returns undefined: the run is over
 */
export async function readClaimedRun(
  { database, readBytes }: { database: Database; readBytes: number },
  key: RunOfTenant & { workerId: string },
  claimed: Claimed,
): Promise<ClaimedRun | undefined> {
  const { row } = claimed;
  if (row.message) return claimedNewRun(key, claimed, row.message, readBytes);
  const { tenantId } = key;
  const values = READ_CLAIMED.values({ claimed: key });
  const [whole] = await database.tenantQuery<TaskRow & ClaimedRunRow>(tenantId, READ_CLAIMED, values);
  if (!whole) return undefined;
  const content = await readContent(new TaskReader(database), tenantId, whole, claimed.attempt, readBytes);
  return claimedRun(key, claimed, whole, content);
}

/**
 * The run of a task that has its first message and no more, as its worker gets it.
 * @param readBytes maximum that is read of the task, in bytes of JSON
 */
export function claimedNewRun(
  key: RunOfTenant,
  claimed: Claimed,
  message: object,
  readBytes: number,
): ClaimedRun {
  const { row, working } = claimed;
  return claimedRun(key, claimed, row, newContent(row, message, working, readBytes));
}

function claimedRun(
  { tenantId, runId }: RunOfTenant,
  { attempt, workingEvent }: Claimed,
  row: ClaimedRunRow,
  { snapshot, artifactsAtStart, artifactsAreWhole }: Content,
): ClaimedRun {
  return {
    tenantId,
    taskId: row.id,
    runId,
    attempt,
    agentId: row.agent_id,
    owner: row.owner,
    snapshot,
    artifactsAtStart,
    artifactsAreWhole,
    message: Message.fromJSON(row.message),
    details: detailsFromJson(row.request),
    startSequence: row.start_sequence,
    baseSequence: row.base_sequence ?? row.start_sequence,
    logged: { events: row.last_sequence, bytes: row.size },
    extensions: row.extensions ?? [],
    traceparent: row.traceparent,
    parentTaskId: row.parent_task_id,
    hasPushConfigs: row.push_configs > 0,
    runsAlone: row.error_detail?.runsAlone ?? false,
    waitedSeconds: row.waited_seconds,
    workingEvent,
  };
}

/** The content of a task that has its first message and no more. */
function newContent(
  row: ClaimedRunRow,
  message: object,
  { status, at }: NewStatus,
  readBytes: number,
): Content {
  const working = {
    state: TaskState.TASK_STATE_WORKING,
    status: TaskStatus.toJSON(status) as object,
    status_at: at,
    outcome: null,
  };
  const fits = (row.message_bytes ?? 0) <= readBytes * HISTORY_SHARE;
  const history = fits ? [Message.fromJSON(message)] : [];
  const leftOut = fits ? {} : { historyMessages: 0 };
  const { task, sequence } = storedTask(row, working, { history, artifacts: [] }, leftOut);
  return { snapshot: { task, sequence }, artifactsAtStart: [], artifactsAreWhole: true };
}

/** Reads the content of the task. The claim holds even if this fails. */
async function readContent(
  reader: TaskReader,
  tenantId: string,
  row: TaskRow & ClaimedRunRow,
  attempt: number,
  readBytes: number,
): Promise<Content> {
  const budget = new ReadBudget(readBytes);
  const read = await reader.read(tenantId, row, { budget }).catch((error: unknown) => {
    if (isTransient(error)) throw error;
    return undefined;
  });
  const snapshot = read ?? (await reader.read(tenantId, row, { budget, rowOnly: true }));
  if (!snapshot) throw new Error('A claimed task is gone');
  const { task, sequence } = snapshot;
  // Output of an earlier attempt is part of the task, but not of the artifacts at the start of the turn.
  const start = { tenantId, taskId: row.id, head: row.base_sequence ?? row.start_sequence };
  const snapshotIsWhole = snapshot.truncation?.artifactsUpToEvent === undefined;
  const { artifacts, isWhole } =
    attempt === 1
      ? { artifacts: task.artifacts, isWhole: true }
      : await reader.artifactsAt(start, row, new ReadBudget(readBytes));
  return {
    snapshot: { task, sequence },
    artifactsAtStart: artifacts,
    artifactsAreWhole: snapshotIsWhole && isWhole,
  };
}
