import { clock } from '@baton/telemetry';
import { endsTurn, type EventPayload, Message, TaskState, TaskStatus } from '@baton/a2a';
import type { QueryResultRow } from 'pg';
import type { Database } from '../connection/database.js';
import { keyOfTenant } from '../connection/row-security.js';
import { type Inputs, list, statement } from '../sql/statement.js';
import { plainText } from '../connection/transient.js';
import type { RunKey } from '../dispatch/run-key.js';
import { insertEvents } from '../log/insert-events.js';
import { logRows, type NewLogRow } from '../log/log-rows.js';
import type { AppendBatch, AppendResult, WaitReminders } from '../tasks/task-records.js';
import { readMetadata } from '../tasks/read-metadata.js';
import { artifactKey } from '../log/artifact-key.js';
import { artifactsJson, INLINE_BYTES, statusJson, TERMINAL_STATES } from '../tasks/task-row.js';
import { groupUsageCte } from '../tenants/usage-sql.js';
import type { BatchOperation, RunBatches } from './run-batches.js';

/** Metadata grow with every status that has some. */
const MAX_METADATA_CHARS = 4 * 1024 * 1024;

/** Events to append, as they are stored. */
interface NewBatch extends RunKey {
  /** Sequence of the last event that the writer has appended or read. */
  head: number;
  /** How many events it has. */
  count: number;
  rows: readonly NewLogRow[];
  /** The bytes of its rows. */
  bytes: number;
  /** Events that replace their artifact. */
  starts: readonly ArtifactStart[];
  /** Events with a message. */
  said: readonly SaidMessage[];
  /** The last status of the batch. */
  status: TaskStatus | undefined;
  /** Texts to merge into the task, as JSON. */
  metadata: string | undefined;
  end: TurnEnd | undefined;
}

interface TurnEnd {
  /** As JSON. Unset: they are too large for the row of the task. */
  artifacts: string | undefined;
  outcome: string | null;
  runState: string;
  error?: string;
  wakeInMs?: number;
  reminders?: WaitReminders;
}

interface ArtifactStart {
  /** Position in the batch, from 1. */
  position: number;
  artifact: string;
}

interface SaidMessage {
  /** Position in the batch, from 1. */
  position: number;
  /** As JSON. */
  message: string;
}

/** A part of a batch, with the number of its batch in the statement, from 1. */
type OfBatch<Part> = Part & { batch: number };

/** Facts about the task of an appended batch. */
interface AppendedRow {
  id: string;
  push_configs: number;
  child_tasks: number;
}

const BATCH = {
  tenant_id: ['uuid', ({ tenantId }) => tenantId],
  task_id: ['uuid', ({ taskId }) => taskId],
  run_id: ['uuid', ({ runId }) => runId],
  attempt: ['int', ({ attempt }) => attempt],
  head: ['int', ({ head }) => head],
  events: ['int', ({ count }) => count],
  bytes: ['bigint', ({ bytes }) => bytes],
  state: ['smallint', ({ status }) => status?.state],
  status: ['text', ({ status }) => status && statusJson(status, statusTime(status))],
  status_at: ['timestamptz', ({ status }) => status && statusTime(status)],
  metadata: ['text', ({ metadata }) => metadata],
  ends: ['boolean', ({ end }) => end !== undefined],
  artifacts: ['text', ({ end }) => end?.artifacts],
  outcome: ['text', ({ end }) => end?.outcome],
  run_state: ['text', ({ end }) => end?.runState],
  error: ['text', ({ end }) => end?.error],
  wake_ms: ['float8', ({ end }) => end?.wakeInMs],
  remind_ms: ['float8', ({ end }) => end?.reminders && (end.reminders.remindMs ?? end.reminders.escalateMs)],
  reminder: ['text', ({ end }) => end?.reminders && firstReminder(end.reminders)],
} satisfies Inputs<NewBatch>;

/** The rows of the log (`logRows`). Positions are in the batch, from 1. */
const ROW = {
  payload: ['json', ({ json }) => json],
  batch: ['int', ({ batch }) => batch],
  last: ['int', ({ last }) => last],
  first: ['int', ({ first }) => first],
  artifact: ['bigint', ({ artifact }) => artifact],
} satisfies Inputs<OfBatch<NewLogRow>>;

const START = {
  batch: ['int', ({ batch }) => batch],
  position: ['int', ({ position }) => position],
  artifact: ['bigint', ({ artifact }) => artifact],
} satisfies Inputs<OfBatch<ArtifactStart>>;

const SAID = {
  batch: ['int', ({ batch }) => batch],
  position: ['int', ({ position }) => position],
  message: ['text', ({ message }) => message],
} satisfies Inputs<OfBatch<SaidMessage>>;

/** One batch for each of these runs: events, history, task and, at the end of the turn, the run. See claim.ts for its form. */
export const APPEND = statement(
  'runs-append-3',
  { batches: list(BATCH), rows: list(ROW), starts: list(START), said: list(SAID) },
  ({ batches, rows, starts, said }) => `
WITH task AS (
  UPDATE tasks t SET last_sequence = t.last_sequence + k.events,
    state = coalesce(k.state, t.state), status = coalesce(k.status::json, t.status),
    status_at = coalesce(k.status_at, t.status_at), metadata = coalesce(k.metadata::json, t.metadata),
    open_bytes = t.open_bytes + k.bytes,
    active_run_id = CASE WHEN k.ends THEN NULL ELSE t.active_run_id END,
    outcome = CASE WHEN k.ends THEN k.outcome ELSE t.outcome END,
    stored_bytes = t.stored_bytes + CASE WHEN k.ends THEN t.open_bytes + k.bytes ELSE 0 END,
    artifacts = coalesce(k.artifacts::json, t.artifacts),
    artifacts_sequence = CASE WHEN k.artifacts IS NULL THEN t.artifacts_sequence ELSE t.last_sequence + k.events END,
    wakes_at = clock_timestamp() + k.wake_ms * interval '1 millisecond',
    reminds_at = clock_timestamp() + k.remind_ms * interval '1 millisecond', reminder = k.reminder::jsonb,
    wakes_run_id = CASE WHEN NOT k.ends THEN t.wakes_run_id WHEN k.wake_ms IS NOT NULL THEN k.run_id END
  FROM ${batches.rows('k', 'batch')}
  WHERE t.tenant_id = ${keyOfTenant('k.tenant_id')} AND t.id = k.task_id AND t.active_run_id = k.run_id AND t.attempt = k.attempt
    AND t.last_sequence = k.head AND t.state NOT IN (${TERMINAL_STATES})
  RETURNING t.tenant_id, t.id, t.open_bytes, t.child_tasks, t.push_configs, t.attempt, k.run_id, k.head, k.ends, k.run_state, k.error,
    k.batch
), event AS (
  ${insertEvents(
    {
      tenant_id: 'task.tenant_id',
      task_id: 'task.id',
      sequence: `task.head + (${rows.arrays.last})[e.n]`,
      first_sequence: `task.head + (${rows.arrays.first})[e.n]`,
      attempt: 'task.attempt',
      payload: 'e.payload',
      artifact: `(${rows.arrays.artifact})[e.n]`,
      bytes: 'octet_length(e.payload::text)',
    },
    `FROM json_array_elements(${rows.arrays.payload}) WITH ORDINALITY AS e(payload, n), task WHERE task.batch = (${rows.arrays.batch})[e.n]`,
  )}
), start AS (
  INSERT INTO artifact_starts (tenant_id, task_id, artifact, sequence)
  SELECT task.tenant_id, task.id, s.artifact, task.head + s.position
  FROM ${starts.rows('s')}, task WHERE task.batch = s.batch
), message AS (
  INSERT INTO task_messages (tenant_id, task_id, sequence, message)
  SELECT task.tenant_id, task.id, task.head + m.position, m.message::json
  FROM ${said.rows('m')}, task WHERE task.batch = m.batch
), run AS (
  UPDATE runs r SET state = task.run_state, error = task.error, finished_at = now(), lease_expires_at = NULL
  FROM task WHERE task.ends AND r.tenant_id = ${keyOfTenant('task.tenant_id')} AND r.id = task.run_id
), ${groupUsageCte('+', 'open_bytes', 'task WHERE ends')}
SELECT id, push_configs, child_tasks FROM task`,
);

/** Appends in a batch, each of another task. */
export const APPENDS: BatchOperation<NewBatch, AppendedRow> = {
  identify: ({ taskId }) => taskId,
  charsOf: ({ bytes, end }) => bytes + (end?.artifacts?.length ?? 0),
  prepare(batches) {
    const ofAll = <Part extends object>(part: (batch: NewBatch) => readonly Part[]): OfBatch<Part>[] =>
      batches.flatMap((batch, i) => part(batch).map((item) => ({ ...item, batch: i + 1 })));
    return {
      statement: APPEND,
      values: APPEND.values({
        batches,
        rows: ofAll(({ rows }) => rows),
        starts: ofAll(({ starts }) => starts),
        said: ofAll(({ said }) => said),
      }),
      results: (rows: readonly QueryResultRow[]) => {
        const appended = new Map((rows as AppendedRow[]).map((row) => [row.id, row]));
        return batches.map(({ taskId }) => appended.get(taskId));
      },
    };
  },
};

/**
 * Appends events in one statement: log, history, task and, at the end of the turn, the run. Refused if the attempt is not current,
 * the task is terminal or the log has moved on; then nothing was written.
 */
export async function appendEvents(
  on: { database: Database; batches: RunBatches },
  key: RunKey,
  batch: AppendBatch,
): Promise<AppendResult> {
  const row = batch.metadata
    ? await appendWithMetadata(on.database, key, batch)
    : await on.batches.submit(APPENDS, newBatch(key, batch));
  if (!row) return { ok: false };
  const { child_tasks: children, push_configs: configs } = row;
  const end = batch.end ? { hasChildren: children > 0 } : {};
  const wakes = configs > 0 ? { hasPushConfigs: true } : {};
  return { ok: true, firstSequence: batch.afterSequence + 1, ...wakes, ...end };
}

/** The metadata are merged here and not by Postgres, whose JSON functions refuse U+0000. */
async function appendWithMetadata(
  database: Database,
  key: RunKey,
  batch: AppendBatch,
): Promise<AppendedRow | undefined> {
  return database.inTenant(key.tenantId, async (transaction) => {
    const merged = JSON.stringify({ ...(await readMetadata(transaction, key)), ...batch.metadata });
    if (merged.length > MAX_METADATA_CHARS) {
      throw new RangeError(`The metadata of a task may be ${MAX_METADATA_CHARS} characters of JSON`);
    }
    const { values, results } = APPENDS.prepare([newBatch(key, batch, merged)]);
    return results(await transaction.query(APPEND, values))[0];
  });
}

/**
 * A batch as it is stored. Throws on a batch that contradicts itself.
 * @param metadata of the task from now on, as JSON; unset = as they are
 */
function newBatch(
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
      ...(end.wakeInMs !== undefined && { wakeInMs: end.wakeInMs }),
      ...(end.reminders && { reminders: end.reminders }),
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

/** The first notice of a task that waits, as JSON (`TaskReminderStore`). */
const firstReminder = ({ remindMs, escalateMs }: WaitReminders): string =>
  JSON.stringify(
    remindMs === undefined
      ? { kind: 'escalation', tries: 0, notified: [] }
      : { kind: 'reminder', escalateMs, tries: 0, notified: [] },
  );

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
