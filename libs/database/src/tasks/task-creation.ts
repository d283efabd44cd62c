import { clock } from '@baton/telemetry';
import { keyOfTenant } from '../connection/row-security.js';
import { detailsToJson, type RunRetry, StreamResponse, TaskState } from '@baton/a2a';
import type { QueryResultRow } from 'pg';
import type { NewAuditRecord } from '../audit/audit-records.js';
import type { Database, Statement, Transaction, Values } from '../connection/database.js';
import { byTenant, GroupCommit, groupBy } from '../connection/group-commit.js';
import { LOCK_TENANTS } from '../dispatch/dispatch.store.js';
import { groupQuotaCte } from '../dispatch/quota.js';
import { BEGIN_USAGE, countSliceIn, type RoomRow, TAKE_ROOM } from '../tenants/usage.store.js';
import { putConfig, type TurnPush } from '../push/push-config.store.js';
import { isSaidByMessage } from '../log/log-rows.js';
import { leaseEnd } from '../dispatch/run-conditions.js';
import type { NewAlias, NewChild, NewTask, RunQuota } from './records.js';
import { statusJson, statusNow } from './task-row.js';
import * as sql from './task-sql.js';
import { StorageFullError } from './storage-full-error.js';
import { ApproverError } from './approver-error.js';
import { ParentOverError } from './parent-over-error.js';
import { TooManyChildrenError } from './too-many-children-error.js';

const NO_QUOTA: RunQuota = { maxInFlight: null, maxWaiting: null, exact: false };
const THREE_TIMES: RunRetry = { maxAttempts: 3, backoff: { initialMs: 0, factor: 1, maxMs: 0 } };

/** Nobody has begun to sum up what the tenant has stored. */
class UncountedError extends Error {}

/** What comes with one turn, in its transaction. */
interface Extras {
  taskId: string;
  /** The sequence of the event with which the turn begins. */
  sequence: number;
  /** Set if the turn begins a child. */
  child?: NewChild | undefined;
  /** For the audit log. */
  record?: NewAuditRecord | undefined;
  /** Set if the turn approves: the id of the token. */
  approvingToken?: string | undefined;
  /** Set if it approves for a user: the id of the entry of its issuer. */
  approvingIssuer?: string | undefined;
  /** Who is told of the turn. */
  push?: TurnPush | undefined;
}

/** A turn that a statement has written. */
interface WrittenTurn {
  taskId: string;
  /** The sequence of the event with which it begins. */
  sequence: number;
  /** Bytes of what it stores as JSON. */
  bytes: number;
}

/** A statement that writes turns, and what comes with them. */
interface Acceptance<Row> {
  tenantId: string;
  statement: Statement;
  /** The last ones are those of `quotaValues`, or of `CREATE`. */
  values: Values;
  quota?: RunQuota | undefined;
  /** The turns that the statement has written. */
  written: (rows: readonly Row[]) => WrittenTurn[];
  /** Only of a statement that writes one turn. */
  extras?: Omit<Extras, 'taskId' | 'sequence'>;
}

/** The values of `quotaCte` and of the retry policy. */
export function quotaValues(quota: RunQuota = NO_QUOTA, retry: RunRetry = THREE_TIMES): Values {
  return [quota.maxInFlight, quota.maxWaiting, policyOf(retry)];
}

/** The value of `retryValues`. */
function policyOf({ maxAttempts, backoff }: RunRetry = THREE_TIMES): number[] {
  return [maxAttempts, backoff.initialMs, backoff.factor, backoff.maxMs];
}

/**
 * One transaction that writes turns of a tenant. Where a limit must hold exactly, such transactions of the tenant come one by
 * one.
 * @returns the rows of the statement
 * @throws StorageFullError if there is no room for all of them; nothing was written then
 */
export async function acceptTurns<Row extends QueryResultRow>(
  database: Database,
  acceptance: Acceptance<Row>,
): Promise<Row[]> {
  const { tenantId, statement, values, quota = NO_QUOTA, extras } = acceptance;
  const write: [Statement, Values] = [statement, values];
  const lock: [Statement, Values] = [LOCK_TENANTS, [[tenantId]]];
  const calls = quota.exact ? [lock, write] : [write];
  const { maxStoredBytes = null } = quota;
  if (maxStoredBytes === null && !hasExtras(extras)) {
    const answers = await database.tenantQueries(tenantId, calls, 'generic');
    return (answers.at(-1) ?? []) as Row[];
  }
  try {
    return await acceptInSteps(database, acceptance, calls, maxStoredBytes);
  } catch (error) {
    if (!(error instanceof UncountedError)) throw error;
    // In one transaction: until a tenant is counted nothing is refused, so nobody may see its usage before that. A slice is
    // enough for most tenants. For others a worker goes on.
    await database.inTenant(tenantId, async (transaction) => {
      await transaction.query(BEGIN_USAGE, [tenantId]);
      await countSliceIn(transaction, tenantId);
    });
    return acceptInSteps(database, acceptance, calls, maxStoredBytes);
  }
}

/** Whether a turn must be written in a transaction of its own. */
const hasExtras = (extras: Acceptance<never>['extras'] = {}): boolean =>
  Object.values<unknown>(extras).some((extra) => extra !== undefined);

async function acceptInSteps<Row extends QueryResultRow>(
  database: Database,
  { tenantId, written, extras }: Acceptance<Row>,
  calls: readonly [Statement, Values][],
  maxStoredBytes: number | null,
): Promise<Row[]> {
  return database.inTenant(tenantId, async (transaction) => {
    const answers = await Promise.all(
      calls.map(([statement, values]) => transaction.query<QueryResultRow>(statement, values)),
    );
    const rows = (answers.at(-1) ?? []) as Row[];
    const turns = written(rows);
    const [first] = turns;
    if (!first) return rows;
    if (extras) await addExtras(transaction, tenantId, { ...extras, ...first });
    if (maxStoredBytes !== null) await takeRoom(transaction, tenantId, turns, maxStoredBytes);
    if (extras?.record) await transaction.record(extras.record);
    return rows;
  });
}

async function addExtras(transaction: Transaction, tenantId: string, extras: Extras): Promise<void> {
  const { taskId, sequence: head, child, push } = extras;
  if (child) await addChild(transaction, tenantId, { ...child, taskId });
  await assertMayApprove(transaction, tenantId, extras);
  if (push) await putConfig(transaction, { ...push, tenantId, taskId, after: head - 1, head });
}

/**
 * Locks a token that may approve: whoever takes the right away has done so before, or waits until the approval is
 * committed. $1 tenant $2 token
 */
const LOCK_APPROVER: Statement = {
  name: 'task-lock-approver',
  text: `
SELECT id FROM api_tokens
WHERE tenant_id = $1 AND id = $2 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())
  AND scopes && ARRAY['tasks:approve', 'admin']
FOR SHARE`,
};

/** The same of the issuer that vouches for a user: $1 tenant $2 entry */
const LOCK_ISSUER: Statement = {
  name: 'task-lock-issuer',
  text: 'SELECT id FROM issuers WHERE tenant_id = $1 AND id = $2 FOR SHARE',
};

/** @throws ApproverError */
async function assertMayApprove(
  transaction: Transaction,
  tenantId: string,
  { approvingToken, approvingIssuer }: Extras,
): Promise<void> {
  const by = approvingToken ?? approvingIssuer;
  if (by === undefined) return;
  const lock = approvingToken === undefined ? LOCK_ISSUER : LOCK_APPROVER;
  const found = await transaction.query(lock, [tenantId, by]);
  if (found.length === 0) throw new ApproverError();
}

interface AddedChildRow {
  /** How many tasks there are below the first one, this one included. */
  tasks: number;
}

/**
 * Makes a task that this transaction has written a child, if the run still owns the parent: $1 tenant $2 child
 * $3 parent $4 run $5 attempt $6 the first task of all. Whoever ends the parent waits here, or has been before. Who
 * holds the first task waits for no other, so locking it second makes no circle.
 */
const ADD_CHILD: Statement = {
  name: 'task-add-child',
  text: `
WITH parent AS (
  SELECT id, owner FROM tasks WHERE tenant_id = ${keyOfTenant('$1')} AND id = $3 AND active_run_id = $4 AND attempt = $5 FOR UPDATE
), counted AS (
  UPDATE tasks t SET child_tasks = t.child_tasks + 1
  FROM parent WHERE t.tenant_id = ${keyOfTenant('$1')} AND t.id IN ($3, $6)
  RETURNING t.id, t.child_tasks
), child AS (
  UPDATE tasks t SET parent_task_id = $3, owner = parent.owner FROM parent WHERE t.tenant_id = ${keyOfTenant('$1')} AND t.id = $2
)
SELECT max(child_tasks) AS tasks FROM counted HAVING count(*) > 0`,
};

/** Locks the parent: either its end finds the new child, or the child finds that it has ended. */
async function addChild(
  transaction: Transaction,
  tenantId: string,
  { parent, rootTaskId, maxTasks, taskId }: NewChild & { taskId: string },
): Promise<void> {
  const values = [tenantId, taskId, parent.taskId, parent.runId, parent.attempt, rootTaskId];
  const [added] = await transaction.query<AddedChildRow>(ADD_CHILD, values);
  if (!added) throw new ParentOverError();
  if (added.tasks > maxTasks) throw new TooManyChildrenError();
}

async function takeRoom(
  transaction: Transaction,
  tenantId: string,
  turns: readonly WrittenTurn[],
  maxStoredBytes: number,
): Promise<void> {
  const bytes = turns.map((turn) => turn.bytes);
  const tasks = turns.map(({ taskId }) => taskId);
  const [room] = await transaction.query<RoomRow>(TAKE_ROOM, [tenantId, bytes, maxStoredBytes, tasks]);
  if (room?.taken) return;
  throw room?.counted ? new StorageFullError() : new UncountedError();
}

/** Tasks of one transaction. */
const MAX_TASKS = 64;
/** A message may be in the group twice: as it was said, and in the first event of its task. */
const MAX_BYTES = 4 * 1024 * 1024;

/** A new task as it is written. */
interface TaskRow {
  input: NewTask;
  /** What it stores as JSON. */
  bytes: number;
  state: TaskState;
  status: string;
  statusAt: Date;
  metadata: string | undefined;
  message: string;
  /** Unset: the message stands for the first event. */
  event: string | undefined;
  /** Of the request, beside the message. */
  details: string | undefined;
}

/** ProtoJSON of event 1, as far as the task's row needs it. */
interface CreatedEvent {
  task: { history?: object[]; metadata?: object };
}

function rowOf(input: NewTask): TaskRow {
  const { task } = input;
  const event = StreamResponse.toJSON({ payload: { $case: 'task', value: task } }) as CreatedEvent;
  const { history, metadata } = event.task;
  if (history?.length !== 1) throw new TypeError('A new task has one message');
  const message = JSON.stringify(history[0]);
  const { status = statusNow(TaskState.TASK_STATE_SUBMITTED).status } = task;
  const statusAt = status.timestamp ? new Date(status.timestamp) : clock.date();
  const text = JSON.stringify(event);
  const ids = { taskId: task.id, contextId: task.contextId };
  const stored = isSaidByMessage(text, ids, message, statusAt) ? undefined : text;
  const details = input.details && JSON.stringify(detailsToJson(input.details));
  return {
    input,
    message,
    event: stored,
    details,
    bytes: [message, stored, details].reduce((sum, json) => sum + Buffer.byteLength(json ?? ''), 0),
    state: status.state,
    status: statusJson(status, statusAt.toISOString()),
    statusAt,
    metadata: metadata && JSON.stringify(metadata),
  };
}

/**
 * A group of tasks of one tenant, each judged on its own, in their order. No two have the same key. Concurrent messages with
 * the same key wait in `known` for each other; keys are locked in their order, so that no two groups deadlock. JSON comes in
 * one array each: Postgres takes its elements as they were sent. The tasks of a group differ by a microsecond, because the
 * oldest one goes first.
 *
 * A run that need not wait is claimed at once, as its first attempt, if a worker is named for it
 * (docs/inside/adr/0050-acceptance-claims-runs.md).
 *
 * $1 tenant $2 tasks $3 agents $4 contexts $5 states $6 statuses $7 at $8 metadata $9 messages (JSON array) $10 events,
 * NULL = the message stands for it $11 runs $12 extensions $13 traceparents $14 owners $15 keys $16 contents $17 hours $18 tasks that
 * are gone $19 keys of an earlier release $20 how many runs may be in flight, of each $21 how many may wait $22 the retry policy $23 the workers
 * for which the runs are claimed, NULL = none $24 their leases in ms $25 what the requests say beside the messages, NULL = nothing
 */
export const CREATE: Statement = {
  name: 'task-create-group',
  text: `
WITH item AS MATERIALIZED (
  SELECT * FROM ROWS FROM (
    unnest($2::uuid[], $3::text[], $4::text[], $5::smallint[], $6::text[], $7::timestamptz[], $8::text[]),
    json_array_elements($9::json),
    unnest($10::text[], $11::uuid[], $12::text[], $13::text[], $14::text[], $15::bytea[], $16::bytea[], $17::int[], $18::uuid[],
      $19::bytea[], $20::int[], $23::text[], $24::int[], $25::text[])
  ) WITH ORDINALITY AS i(task_id, agent_id, context_id, state, status, status_at, metadata, message, event, run_id,
    extensions, traceparent, owner, key, content, hours, gone, earlier_key, max_in_flight, worker_id, lease_ms, request, position)
), looked_up AS MATERIALIZED (
  SELECT i.*, before.task_id AS before_task, before.sequence AS before_sequence, before.content AS before_content,
    before.task_id IS NOT NULL OR coalesce((
      SELECT true FROM message_keys k
      WHERE k.tenant_id = $1 AND k.key = i.key AND k.expires_at > now() AND k.task_id IS DISTINCT FROM i.gone LIMIT 1
    ), false) AS is_known
  FROM item i LEFT JOIN LATERAL (
    SELECT task_id, sequence, content FROM message_keys
    WHERE tenant_id = $1 AND key = i.earlier_key AND expires_at > now() AND task_id IS DISTINCT FROM i.gone LIMIT 1
  ) before ON true
), ${groupQuotaCte('looked_up', { tenant_id: '$1', max_in_flight: '$20::int[]', max_waiting: '$21::int' })}, known AS (
  INSERT INTO message_keys AS k (tenant_id, key, content, task_id, sequence, expires_at)
  SELECT $1::uuid, key, coalesce(before_content, content), coalesce(before_task, task_id), coalesce(before_sequence, 1),
    now() + hours * interval '1 hour'
  FROM placed WHERE key IS NOT NULL AND NOT refused ORDER BY key
  ON CONFLICT (tenant_id, key) DO UPDATE SET ${sql.reuseKey('(SELECT i.gone FROM item i WHERE i.key = EXCLUDED.key)')}
  RETURNING k.key, k.task_id, k.content
), judged AS MATERIALIZED (
  SELECT p.*, CASE WHEN NOT p.refused THEN coalesce(k.task_id, p.task_id) END AS named, k.content AS known_content,
    now() + (p.position - 1) * interval '1 microsecond' AS created_at, p.dispatched AND p.worker_id IS NOT NULL AS claimed
  FROM placed p LEFT JOIN known k ON k.key = p.key
), created AS MATERIALIZED (
  SELECT * FROM judged WHERE named = task_id
), task AS (
  INSERT INTO tasks (tenant_id, id, agent_id, context_id, context_key, state, status, status_at, metadata,
    last_sequence, artifacts_sequence, active_run_id, attempt, stored_bytes, owner, push_configs, created_at)
  SELECT $1, task_id, agent_id, context_id, md5(context_id)::uuid, state, status::json, status_at, metadata::json,
    1, 1, run_id, claimed::int, octet_length(message::text) + coalesce(octet_length(event), 0) + coalesce(octet_length(request), 0), owner,
    ${sql.webhooksOf('task_id', 'agent_id')}, created_at
  FROM created
), message AS (
  INSERT INTO task_messages (tenant_id, task_id, sequence, message, accepted_at, request)
  SELECT $1, task_id, 1, message, CASE WHEN event IS NULL THEN status_at END, request::json FROM created
), event AS (
  INSERT INTO task_events (tenant_id, task_id, sequence, attempt, payload, artifact, bytes)
  SELECT $1, task_id, 1, 0, event::json, 0, octet_length(event) FROM created WHERE event IS NOT NULL
), run AS (
  INSERT INTO runs (tenant_id, id, task_id, state, attempt, worker_id, lease_expires_at, start_sequence, extensions, traceparent,
    enqueued_at, created_at, ${sql.RETRY})
  SELECT $1, run_id, task_id, CASE WHEN claimed THEN 'running' ELSE 'queued' END, claimed::int, CASE WHEN claimed THEN worker_id END,
    CASE WHEN claimed THEN ${leaseEnd('lease_ms')} END, 1, extensions::text[], traceparent,
    CASE WHEN dispatched THEN now() END, created_at, ${sql.retryValues(22)} FROM created
)
SELECT named AS task_id, known_content AS content, dispatched, claimed, may_use_reserved FROM judged ORDER BY position`,
};

/** The values of `CREATE`. They have one tenant, one retry policy, and one quota but for the runs in flight. */
function createValues(tenantId: string, rows: readonly TaskRow[]): Values {
  const column = <T>(value: (row: TaskRow) => T): T[] => rows.map(value);
  const [first] = rows;
  return [
    tenantId,
    column(({ input }) => input.task.id),
    column(({ input }) => input.agentId),
    column(({ input }) => input.task.contextId),
    column(({ state }) => state),
    column(({ status }) => status),
    column(({ statusAt }) => statusAt),
    column(({ metadata }) => metadata),
    `[${column(({ message }) => message).join()}]`,
    column(({ event }) => event),
    column(({ input }) => input.runId),
    column(({ input }) => textArray(input.extensions)),
    column(({ input }) => input.traceparent),
    column(({ input }) => input.owner),
    column(({ input }) => input.key?.hash),
    column(({ input }) => input.key?.content),
    column(({ input }) => input.key?.hours),
    column(({ input }) => input.key?.goneTaskId),
    column(({ input }) => input.key?.earlierHash),
    column(({ input }) => input.quota?.maxInFlight),
    first?.input.quota?.maxWaiting,
    policyOf(first?.input.retry),
    column((row) => claimOf(row)?.workerId),
    column((row) => claimOf(row)?.leaseMs),
    column(({ details }) => details),
  ];
}

/** An array as Postgres writes it. */
const textArray = (texts: readonly string[]): string =>
  `{${texts.map((text) => `"${text.replace(/[\\"]/g, '\\$&')}"`).join()}}`;

/** Creates tasks without an id of the caller's, many in one transaction (`GroupCommit`). */
export class TaskCreation {
  private readonly groups: GroupCommit<TaskRow, sql.CreatedRow | undefined>;

  constructor(private readonly database: Database) {
    this.groups = new GroupCommit((rows) => this.flush(rows), {
      maxItems: MAX_TASKS,
      maxWeight: MAX_BYTES,
      weigh: ({ bytes }) => bytes,
      identify: ({ input }) => input.key && `${input.tenantId} ${input.key.hash.toString('base64')}`,
      shares: canShare,
      tenantOf: ({ input }) => input.tenantId,
    });
  }

  /** Has connections ready for the first tasks. */
  prepare(): Promise<void> {
    return this.database.prepare((tenantId) => [[CREATE, createValues(tenantId, [])]]);
  }

  /** What has become of it. What only its own transaction can have goes alone. */
  async create(input: NewTask): Promise<sql.CreatedRow | undefined> {
    const row = rowOf(input);
    const { child, push } = input;
    if (!hasExtras({ child, push })) return this.groups.submit(laneOf(row), row);
    const [created] = await this.write([row], { child, push });
    return created;
  }

  private async flush(rows: readonly TaskRow[]): Promise<(sql.CreatedRow | undefined)[]> {
    const [first] = rows;
    if (!first || !canShare(first)) return this.write(rows);
    const tenants = byTenant(rows, ({ input }) => input.tenantId).map(([tenantId, its]) => {
      const lanes = [...groupBy(its, laneOf).values()];
      const calls = lanes.map((lane): [Statement, Values] => [CREATE, createValues(tenantId, lane)]);
      return { tenantId, lanes, calls };
    });
    const answers = await this.database.tenantsQueries(
      tenants.map(({ tenantId, calls }) => [tenantId, calls]),
    );
    const created = new Map<TaskRow, sql.CreatedRow | undefined>();
    for (const [i, { lanes }] of tenants.entries()) {
      const answered = (answers[i] ?? []) as sql.CreatedRow[][];
      lanes.forEach((lane, k) => lane.forEach((row, n) => created.set(row, answered[k]?.[n])));
    }
    return rows.map((row) => created.get(row));
  }

  private async write(
    rows: readonly TaskRow[],
    extras?: Pick<NewTask, 'child' | 'push'>,
  ): Promise<sql.CreatedRow[]> {
    const [first] = rows;
    if (!first) return [];
    const { tenantId, quota } = first.input;
    return acceptTurns<sql.CreatedRow>(this.database, {
      tenantId,
      statement: CREATE,
      values: createValues(tenantId, rows),
      quota,
      written: (outcomes) =>
        rows.flatMap((row, i) => {
          const { id } = row.input.task;
          return outcomes[i]?.task_id === id ? [{ taskId: id, sequence: 1, bytes: row.bytes }] : [];
        }),
      ...(extras && { extras }),
    });
  }
}

/** Of a task that shares its transaction with those of other tenants. They would wait for a larger one. */
const MAX_SHARED_BYTES = 32 * 1024;

/** The claim that a task asks for. `RunStore.pickUp` reads it whole, so a larger one goes through the queue. */
const claimOf = ({ bytes, input }: TaskRow): NewTask['claimFor'] =>
  bytes <= MAX_SHARED_BYTES ? input.claimFor : undefined;

/** Whether the transaction of a task can be that of other tenants, too: it locks nothing of its tenant, and is small. */
const canShare = (row: TaskRow): boolean => {
  const { exact, maxStoredBytes = null } = row.input.quota ?? NO_QUOTA;
  return !exact && maxStoredBytes === null && row.bytes <= MAX_SHARED_BYTES;
};

/** What the statement has only once for a group. Runs in flight are limited one by one. */
const laneOf = (row: TaskRow): string => {
  const { tenantId, quota, retry } = row.input;
  return JSON.stringify([
    tenantId,
    canShare(row),
    quota?.exact,
    quota?.maxWaiting,
    quota?.maxStoredBytes,
    retry && policyOf(retry),
  ]);
};

/** Creates a task under an id of the caller's. */
export async function createAliased(
  database: Database,
  input: NewTask & { alias: NewAlias },
): Promise<sql.CreatedRow | undefined> {
  const { tenantId, agentId, owner, runId, task, extensions, traceparent, alias, key, quota, retry } = input;
  const row = rowOf(input);
  const values = [
    tenantId,
    task.id,
    agentId,
    task.contextId,
    row.state,
    row.status,
    row.statusAt,
    row.metadata,
    row.message,
    row.event,
    runId,
    extensions,
    traceparent,
    owner,
    alias.profile,
    alias.clientId,
    alias.previousTaskId,
    ...(key ? sql.keyValues(key) : []),
    ...quotaValues(quota, retry),
    row.details,
  ];
  const [created] = await acceptTurns<sql.CreatedRow>(database, {
    tenantId,
    statement: key ? sql.CREATE_ALIASED_KEYED : sql.CREATE_ALIASED,
    values,
    quota,
    written: (rows) =>
      rows.flatMap(({ task_id }) =>
        task_id === task.id ? [{ taskId: task.id, sequence: 1, bytes: row.bytes }] : [],
      ),
    extras: { child: input.child, push: input.push },
  });
  return created;
}
