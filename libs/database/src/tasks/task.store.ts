import {
  detailsFromJson,
  detailsToJson,
  isTerminal,
  isUuid,
  LoggedEvent,
  Message,
  type OwnTasks,
  type ReadMemory,
  type TaskEvent,
  TaskState,
  type RequestDetails,
} from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import type { Actor } from '../audit/audit-records.js';
import { Database } from '../connection/database.js';
import { cancelTask } from './cancel-task.js';
import type {
  CancelResult,
  CreatedTask,
  EarlierTurn,
  MessageKey,
  NewTask,
  NextTurn,
  NextTurnResult,
  StoredTask,
  TaskAlias,
  TaskFilter,
} from './records.js';
import {
  EVENT_TIMES,
  eventJson,
  type EventRow,
  type PageRow,
  READ_EVENTS,
  READ_PAGE,
} from '../log/log-rows.js';
import { ReadBudget } from './task-content.js';
import {
  type CountCursor,
  countSliceStatement,
  countStatement,
  foundStatement,
  type ListedTasks,
  pageStatement,
  searchStatement,
} from './task-list.js';
import { type ArtifactPage, type LogSnapshot, TaskReader, type WantedArtifacts } from './task-reader.js';
import { ALL_STATES, statusNow, type TaskRow } from './task-row.js';
import * as sql from './task-sql.js';
import { acceptTurns, createAliased, quotaValues, TaskCreation } from './task-creation.js';
import { TooManyWaitingError } from './too-many-waiting-error.js';

/** Of a message that has made no task. */
const NO_RUN = { dispatched: false, claimed: false, mayUseReserved: false };
/** Largest `integer` of Postgres. */
const MAX_INT = 2_147_483_647;
/** Tasks that one statement of a search looks at. */
const SEARCH_SLICE = 1_000;
/** A search begins no further statement after this time. */
const SEARCH_MS = 2_000;
/** Unless somebody says otherwise. */
const MAX_READ_BYTES = 16 * 1024 * 1024;

/**
 * Tasks and their logs, as callers see them. Every method works inside one tenant (row-level security). What a method
 * reads of tasks is bounded, however large they are; what is left out is marked in the task's metadata (`Truncation`).
 */
@Injectable()
export class TaskStore {
  private readonly reader: TaskReader;
  private readonly creations: TaskCreation;

  /** @param readBytes most that one call reads of tasks, in bytes of JSON */
  constructor(
    private readonly database: Database,
    private readonly readBytes = MAX_READ_BYTES,
  ) {
    this.reader = new TaskReader(database);
    this.creations = new TaskCreation(database);
  }

  /** Has connections ready for the first tasks of this process. Writes nothing. */
  prepare(): Promise<void> {
    return this.creations.prepare();
  }

  /** What the request that began the task said beside its message. Undefined: there is no such message. */
  async firstDetails(tenantId: string, taskId: string): Promise<RequestDetails | undefined> {
    if (!isUuid(taskId)) return undefined;
    const [row] = await this.database.tenantQuery<{ request: object | null }>(
      ...([tenantId, sql.FIRST_REQUEST, [tenantId, taskId]] as const),
    );
    return row && detailsFromJson(row.request);
  }

  /**
   * One transaction: task, message, event 1 and a queued run; and its alias or its key, if it has one. Of several
   * creates with the same key, or the same alias and previous task, one creates its task, the others learn its id.
   * @throws TooManyWaitingError, StorageFullError if there is no slot for it; nothing was written then
   * @throws ParentOverError, TooManyChildrenError if it may not be a child; nothing was written then
   * @throws LimitReachedError if there may be no push config; nothing was written then
   */
  async create(input: NewTask): Promise<CreatedTask> {
    const { tenantId, task, alias, key } = input;
    const row = alias
      ? await createAliased(this.database, { ...input, alias })
      : await this.creations.create(input);
    if (row?.task_id) {
      const { task_id: taskId, content = null } = row;
      const created = taskId === task.id;
      const { dispatched, claimed = false, may_use_reserved: mayUseReserved } = row;
      const run = { dispatched, claimed, mayUseReserved };
      return { created, ...(created ? run : NO_RUN), taskId, content };
    }
    const earlier = key && (await this.earlierTurn(tenantId, key));
    if (!earlier) throw new TooManyWaitingError();
    return { ...earlier, created: false, ...NO_RUN };
  }

  /**
   * The task that a caller's id names.
   * @param alias.agentId unset: of any agent of the tenant; if several have such a task, the newest
   * @param alias.own who has chosen the id: this principal or, with `unowned`, a caller of an earlier release
   */
  async findAlias(
    alias: TaskAlias & { tenantId: string; agentId?: string | undefined; own: OwnTasks },
  ): Promise<{ taskId: string; agentId: string } | undefined> {
    const { tenantId, agentId, profile, clientId, own } = alias;
    // Postgres has no text with U+0000, so nothing is called that.
    if (clientId.includes('\0')) return undefined;
    const values = [tenantId, profile, clientId, agentId, own.owner, own.unowned];
    const [row] = await this.database.tenantQuery<sql.AliasRow>(tenantId, sql.FIND_ALIAS, values);
    return row && { taskId: row.task_id, agentId: row.agent_id };
  }

  /**
   * One transaction: the message, a `submitted` event and a queued run, and the message's key if it has one.
   * Refused unless the task is interrupted, or if the key is known.
   * @throws TooManyWaitingError, StorageFullError if there is no slot for it; ApproverError if the token may not approve
   * any more; nothing was written then
   */
  async continue(input: NextTurn): Promise<NextTurnResult> {
    const { tenantId, agentId, taskId, runId, message, extensions, traceparent, key, quota, retry } = input;
    const { record, approvingToken, approvingIssuer, push, details } = input;
    if (!isUuid(taskId)) return { ok: false, reason: 'not-found' };
    const { json, at } = statusNow(TaskState.TASK_STATE_SUBMITTED);
    const said = JSON.stringify(Message.toJSON(message));
    const asked = details && JSON.stringify(detailsToJson(details));
    const values = [tenantId, taskId, agentId, runId, json, at, said, extensions, traceparent];
    const statement = key ? sql.CONTINUE_KEYED : sql.CONTINUE;
    const [row] = await acceptTurns<sql.ContinuedRow>(this.database, {
      tenantId,
      statement,
      quota,
      values: [...values, ...(key ? sql.keyValues(key) : []), ...quotaValues(quota, retry), asked],
      written: (rows) =>
        rows.flatMap(({ sequence }) =>
          sequence === null
            ? []
            : [{ taskId, sequence, bytes: Buffer.byteLength(said) + Buffer.byteLength(asked ?? '') }],
        ),
      extras: { record, approvingToken, approvingIssuer, push },
    });
    if (!row) return { ok: false, reason: 'not-found' };
    const { sequence, dispatched, may_use_reserved: mayUseReserved, refused } = row;
    if (sequence !== null) return { ok: true, sequence, dispatched, mayUseReserved };
    const earlier = key && (await this.earlierTurn(tenantId, key));
    if (earlier) return { ok: false, reason: 'repeated', earlier };
    if (refused) throw new TooManyWaitingError();
    return { ok: false, reason: isTerminal(row.state) ? 'terminal' : 'busy' };
  }

  /** What a message with that key has made. */
  async earlierTurn(
    tenantId: string,
    { hash, goneTaskId, earlierHash }: MessageKey,
  ): Promise<EarlierTurn | undefined> {
    const [row] = await this.database.tenantQuery<sql.KnownRow>(tenantId, sql.FIND_KEY, [
      tenantId,
      hash,
      goneTaskId,
      earlierHash,
    ]);
    return row && { taskId: row.task_id, content: row.content };
  }

  /** The task at the head of its log; snapshot and sequence come from one statement, so neither is older. */
  async get(
    tenantId: string,
    taskId: string,
    options: { historyLength?: number; artifacts?: boolean; memory?: ReadMemory | undefined } = {},
  ): Promise<StoredTask | undefined> {
    if (!isUuid(taskId)) return undefined;
    const { historyLength, memory } = options;
    const statement = options.artifacts === false ? sql.GET_WITHOUT_ARTIFACTS : sql.GET;
    const values = [tenantId, taskId, historyLimit(historyLength)];
    const [row] = await this.database.tenantQuery<TaskRow>(tenantId, statement, values);
    return row && this.reader.read(tenantId, row, { historyLength, budget: this.budgetFor([row], memory) });
  }

  /**
   * One page, newest status first. `total` counts the tasks of all pages; null = uncounted, or more than can be
   * counted at every list, see `count`.
   */
  async list(filter: TaskFilter): Promise<{ tasks: StoredTask[]; total: number | null; more: boolean }> {
    const page = pageStatement({ ...filter, historyLength: historyLimit(filter.historyLength) });
    const count = filter.uncounted ? [] : [countStatement(filter)];
    const reads = filter.mayLag ? this.database.lists : this.database;
    const [rows = [], [counted] = []] = await reads.tenantQueries(filter.tenantId, [page, ...count]);
    const { pageSize } = filter;
    const tasks = await this.readAll(rows.slice(0, pageSize) as TaskRow[], filter);
    const { total = null } = (counted ?? {}) as { total?: number | null };
    return { tasks, total, more: rows.length > filter.pageSize };
  }

  /**
   * Tasks of a list with a text, newest status first: in the text of the first message, in the id of the context, or at the
   * beginning of the task's id. It looks at no more than `maxSearched` tasks and stops early if that takes long.
   * @param filter.pageSize most tasks of the answer
   * @returns the tasks without their contents, how many it has looked at, and where to go on; no `next` = these were all
   */
  async search(
    filter: ListedTasks & Pick<TaskFilter, 'after' | 'pageSize'>,
    text: string,
    maxSearched: number,
  ): Promise<{ tasks: StoredTask[]; searched: number; next?: TaskFilter['after'] }> {
    const { tenantId, pageSize } = filter;
    const until = performance.now() + SEARCH_MS;
    const found: string[] = [];
    let searched = 0;
    let next = filter.after;
    do {
      const size = Math.min(SEARCH_SLICE, maxSearched - searched);
      const [statement, values] = searchStatement({ ...filter, after: next }, text, size);
      type SearchRow = { status_at: Date; id: string; matches: boolean };
      const rows = await this.database.lists.tenantQuery<SearchRow>(tenantId, statement, values);
      for (const { status_at: statusAt, id, matches } of rows) {
        searched += 1;
        next = { statusAt, taskId: id };
        if (matches && found.push(id) === pageSize) break;
      }
      if (found.length === pageSize) break;
      if (rows.length < size) next = undefined;
    } while (next && searched < maxSearched && performance.now() < until);
    const tasks = found.length > 0 ? await this.readFound(tenantId, found) : [];
    return { tasks, searched, ...(next && { next }) };
  }

  private async readFound(tenantId: string, ids: readonly string[]): Promise<StoredTask[]> {
    const [statement, values] = foundStatement(tenantId, ids);
    const rows = await this.database.lists.tenantQuery<TaskRow>(tenantId, statement, values);
    return this.readAll(rows, { tenantId, historyLength: 0 });
  }

  /**
   * Counts the next tasks of a list, at most `limit`.
   * @param cursor where the slice before has ended
   * @returns how many, and where to go on; no cursor = that was all
   */
  async countSlice(
    filter: ListedTasks,
    cursor: CountCursor,
    limit: number,
  ): Promise<{ tasks: number; cursor?: CountCursor }> {
    const [statement, values] = countSliceStatement(filter, cursor, limit);
    type SliceRow = { tasks: number; status_at: string; id: string };
    const [row] = await this.database.lists.tenantQuery<SliceRow>(filter.tenantId, statement, values);
    const tasks = row?.tasks ?? 0;
    if (row && tasks === limit) {
      return { tasks, cursor: { state: cursor.state, after: { statusAt: row.status_at, taskId: row.id } } };
    }
    const state = filter.state === undefined ? cursor.state + 1 : ALL_STATES.length;
    return state < ALL_STATES.length ? { tasks, cursor: { state } } : { tasks };
  }

  /**
   * The last `limit` tasks of the context that the owner of that task has made before it, whatever their state; oldest
   * first. A context id that others use as well is another conversation. Tasks of earlier releases, which have no owner,
   * count for everybody but guests.
   */
  async listContext(
    tenantId: string,
    agentId: string,
    contextId: string,
    beforeTaskId: string,
    limit: number,
    memory?: ReadMemory,
  ): Promise<StoredTask[]> {
    if (!isUuid(beforeTaskId)) return [];
    const values = [tenantId, agentId, contextId, beforeTaskId, limit];
    const rows = await this.database.tenantQuery<TaskRow>(tenantId, sql.LIST_CONTEXT, values);
    const newestFirst = rows.toReversed();
    return (await this.readAll(newestFirst, { tenantId, memory })).reverse();
  }

  /**
   * Compare-and-set to `canceled`, with its event; finishes the active run as canceled. A task with a log of any size
   * can be canceled, because only its row is read.
   * @param agentId null = whichever agent the task belongs to
   * @param options.metadata keys merged into the task's metadata, if it is canceled by this call
   * @param options.own the task must be one of these; unset = whosever it is
   * @param options.by who cancels; unset = the platform does
   */
  async cancel(
    tenantId: string,
    agentId: string | null,
    taskId: string,
    options: { metadata?: object | undefined; own?: OwnTasks | undefined; by?: Actor | undefined } = {},
  ): Promise<CancelResult> {
    if (!isUuid(taskId)) return { ok: false, reason: 'not-found' };
    return cancelTask(this.database, this.reader, { tenantId, agentId, taskId, ...options });
  }

  /** Events after `after`, in order, at most `limit`. */
  async readEvents(tenantId: string, taskId: string, after: number, limit: number): Promise<TaskEvent[]> {
    if (!isUuid(taskId)) return [];
    const values = [tenantId, taskId, Math.min(after, MAX_INT), Math.min(limit, MAX_INT)];
    const rows = await this.database.tenantQuery<EventRow>(tenantId, READ_EVENTS, values);
    return loggedEvents(rows, taskId).map(({ sequence, attempt, payload }) => ({
      sequence,
      attempt,
      payload,
    }));
  }

  /** When the events after `after` were stored, in order, at most `limit`. */
  async eventTimes(
    tenantId: string,
    taskId: string,
    after: number,
    limit: number,
  ): Promise<{ sequence: number; at: Date }[]> {
    if (!isUuid(taskId)) return [];
    const values = [tenantId, taskId, Math.min(after, MAX_INT), limit];
    return this.database.tenantQuery<{ sequence: number; at: Date }>(tenantId, EVENT_TIMES, values);
  }

  /**
   * The next events after `after`, in order: no more after `limit` of them or `bytes` of JSON. `more`: whether there may be
   * events after them.
   */
  async readPage(
    { tenantId, taskId }: { tenantId: string; taskId: string },
    after: number,
    { limit, bytes }: { limit: number; bytes: number },
  ): Promise<{ events: LoggedEvent[]; more: boolean }> {
    if (!isUuid(taskId)) return { events: [], more: false };
    const values = [tenantId, taskId, Math.min(after, MAX_INT), limit, bytes];
    const rows = await this.database.tenantQuery<PageRow>(tenantId, READ_PAGE, values);
    const read = rows.at(-1);
    const more = read !== undefined && (read.number >= limit || read.bytes >= bytes);
    return { events: loggedEvents(rows, taskId), more };
  }

  /** What the log says of artifacts up to an event, page by page (`TaskReader.artifactPage`). */
  async artifactPage(snapshot: LogSnapshot, after: number, wanted?: WantedArtifacts): Promise<ArtifactPage> {
    return this.reader.artifactPage(snapshot, after, wanted);
  }

  /** Whether the log has events of an artifact after one event and up to another. */
  async isArtifactTouched(snapshot: LogSnapshot, artifactId: string, after: number): Promise<boolean> {
    return this.reader.isTouched(snapshot, artifactId, after);
  }

  /** Head sequence of many tasks at once (across tenants), by task id, for the relay's slow tick. */
  async heads(keys: readonly { tenantId: string; taskId: string }[]): Promise<Map<string, number>> {
    const known = keys.filter(({ tenantId, taskId }) => isUuid(tenantId) && isUuid(taskId));
    if (known.length === 0) return new Map();
    const values = [known.map(({ tenantId }) => tenantId), known.map(({ taskId }) => taskId)];
    const rows = await this.database.systemQuery<sql.HeadRow>(sql.HEADS, values);
    return new Map(rows.map(({ id, last_sequence }) => [id, last_sequence]));
  }

  /** The first ones of these rows get what they need, as long as there is something left. */
  private async readAll(
    rows: readonly TaskRow[],
    { tenantId, historyLength, memory }: Pick<TaskFilter, 'tenantId' | 'historyLength' | 'memory'>,
  ): Promise<StoredTask[]> {
    const budget = this.budgetFor(rows, memory);
    const tasks: StoredTask[] = [];
    for (const row of rows) {
      const stored = await this.reader.read(tenantId, row, { historyLength, budget });
      if (stored) tasks.push(stored);
    }
    return tasks;
  }

  private budgetFor(rows: readonly TaskRow[], memory: ReadMemory | undefined): ReadBudget {
    const expected = rows.reduce((sum, { size }) => sum + size, 0);
    return new ReadBudget(this.readBytes, undefined, memory && { of: memory, expected });
  }
}

/** Of a task that was deleted meanwhile: none. */
const loggedEvents = (rows: readonly EventRow[], taskId: string): LoggedEvent[] =>
  rows.flatMap((row) => {
    const json = eventJson(row, taskId);
    return json === undefined ? [] : [new LoggedEvent(row.sequence, row.attempt, json)];
  });

const historyLimit = (length: number | undefined): number | null =>
  length === undefined ? null : Math.min(length, MAX_INT);
