import { TaskState } from '@baton/a2a';
import type { Statement, Values } from '../connection/database.js';
import { PARKED } from '../dispatch/parked-run.js';
import type { Conditions } from './conditions.js';
import { firstMessage } from './first-message.js';
import { historyLimit } from './get.js';
import { LAST_ERROR } from './last-error.js';
import { type ListedTasks, matching, ofOwners, TENANT } from './listed-tasks.js';
import { readTasks, type TaskReads } from './read-tasks.js';
import type { SearchPlace, StoredTask, TaskFilter } from './task-records.js';
import { RowMemory } from './row-memory.js';
import { type FoundTask, hitText, searchHit } from './search-hit.js';
import { ALL_STATES, taskColumns, type TaskRow } from './task-row.js';

type Call = [Statement, Values];

/** Tasks that one statement of a search reads. */
const SEARCH_SLICE = 1_000;
/** A search begins no further statement after this time. */
const SEARCH_MS = 2_000;

/** Totals up to this number are counted by every list; larger ones in slices in the background. */
export const COUNTED_EXACTLY = 10_000;

/** Where a list finds some of its tasks. */
interface StateGroup {
  has: (state: TaskState) => boolean;
  condition: string;
  /** SQL of the tasks `t` in a state, or in all of its states; newest first if in one. */
  from: (state?: string) => string;
}

const isAtWork = (state: TaskState): boolean =>
  state === TaskState.TASK_STATE_SUBMITTED || state === TaskState.TASK_STATE_WORKING;
const WORKING = TaskState.TASK_STATE_WORKING;

/**
 * Tasks at work are in the index of their tenant only, all others in every index of lists (ADR 0026). Postgres uses these
 * indexes when a query repeats their condition literally. OFFSET keeps it from reading all tasks of an agent for the few
 * that are at work.
 */
const STATE_GROUPS: readonly StateGroup[] = [
  {
    has: isAtWork,
    condition: `t.state <= ${WORKING}`,
    from: (state) => `(SELECT * FROM tasks WHERE tenant_id = ${TENANT} AND state <= ${WORKING}
      ${state === undefined ? '' : `AND state = ${state} ORDER BY status_at DESC, id DESC`} OFFSET 0) t`,
  },
  { has: (state) => !isAtWork(state), condition: `t.state > ${WORKING}`, from: () => 'tasks t' },
];

/** SQL of what `parkedRunOf` reads, for a task `t`. */
const PARKED_RUN = `CASE WHEN t.state = ${WORKING} THEN (
    SELECT ${PARKED} FROM runs r WHERE r.tenant_id = t.tenant_id AND r.id = t.active_run_id) END`;

/**
 * The statement that reads a page. It has no name, so Postgres plans it for these filters. It reads the newest tasks of each state from
 * an index, and then the rows of one page. If there is a next page, it reads one row more than was asked for.
 */
function pageStatement(filter: Omit<TaskFilter, 'historyLength'> & { historyLength: number | null }): Call {
  const where = pageConditions(filter);
  const limit = where.value(filter.pageSize + 1);
  const columns = taskColumns(`${where.value(filter.historyLength)}::int`, filter.includeArtifacts, 'list');
  const shown = filter.withFirstMessage
    ? `${columns}, ${firstMessage()} AS first_message, ${LAST_ERROR} AS last_error, ${PARKED_RUN} AS parked`
    : columns;
  const text = `SELECT ${shown}, t.created_at FROM (${newestOfAll(filter, where, limit)}) page JOIN tasks t ON t.tenant_id = ${TENANT} AND t.id = page.id
  ORDER BY t.status_at DESC, t.id DESC`;
  return [{ text }, where.values];
}

/** The conditions of a list after the last row of the page before. */
function pageConditions(filter: ListedTasks & Pick<TaskFilter, 'after'>): Conditions {
  const where = matching(filter, 'id');
  if (filter.after) {
    const { statusAt, taskId } = filter.after;
    where.add(`(t.status_at, t.id) < (${where.value(statusAt)}::timestamptz, ${where.value(taskId)}::uuid)`);
  }
  return where;
}

/** The next tasks of a list, the newest first, at most `slice`, each with the place where it has the text; null: it does not have it. */
function searchStatement(filter: ListedTasks & Pick<TaskFilter, 'after'>, text: string, slice: number): Call {
  const where = pageConditions(filter);
  const limit = where.value(slice);
  const found = `SELECT t.status_at, t.id, ${searchHit(where, text)} AS place
  FROM (${newestOfAll(filter, where, limit)}) page JOIN tasks t ON t.tenant_id = ${TENANT} AND t.id = page.id
  ORDER BY t.status_at DESC, t.id DESC`;
  return [{ text: found }, where.values];
}

/** The rows of a page of a search: the tasks with these ids, as a list has them, each with the text around its hit. */
function foundStatement(tenantId: string, found: readonly FoundTask[], searched: string): Call {
  const text = `SELECT ${taskColumns('0', false, 'list')}, t.created_at, ${firstMessage('$4::text')} AS first_message,
    ${LAST_ERROR} AS last_error, ${PARKED_RUN} AS parked, f.place AS hit_place, ${hitText('f.place', '$4::text')} AS hit_text
  FROM unnest($2::uuid[], $3::text[]) AS f(id, place) JOIN tasks t ON t.tenant_id = ${TENANT} AND t.id = f.id
  ORDER BY t.status_at DESC, t.id DESC`;
  return [{ text }, [tenantId, found.map(({ id }) => id), found.map(({ place }) => place), searched]];
}

/** Counts the tasks of all pages; null if there are more than every list counts. */
function countStatement(filter: ListedTasks): Call {
  const where = matching(filter, 'key');
  if (filter.state !== undefined) where.add(`t.state = ${where.value(filter.state)}`);
  const limit = COUNTED_EXACTLY + 1;
  const found = inStates(filter, ({ from, condition }) =>
    ofOwners(filter, where, (conditions) => `SELECT 1 FROM ${from()} WHERE ${conditions} AND ${condition}`),
  );
  const counted = `SELECT 1 FROM (${found}) found LIMIT ${limit.toString()}`;
  const text = `SELECT nullif(count(*), ${limit.toString()})::int AS total FROM (${counted}) counted`;
  return [{ text }, where.values];
}

/**
 * Counts the tasks of a list in each state, in an index, up to `max`. A plan for the values reads the index of the agent or of the
 * owner if the list has one.
 */
function stateCountsStatement(filter: ListedTasks, max: number): Call {
  const where = matching(filter, 'key');
  const limit = where.value(max);
  const counted = STATE_GROUPS.flatMap(({ has, condition, from }) =>
    ALL_STATES.filter(has).map((state) => {
      const found = ofOwners(
        filter,
        where,
        (conditions) => `SELECT 1 FROM ${from()} WHERE ${conditions} AND ${condition} AND t.state = ${state}`,
      );
      return `SELECT ${state} AS state, (SELECT count(*)::int FROM (SELECT 1 FROM (${found}) found LIMIT ${limit}) counted) AS tasks`;
    }),
  );
  return [{ text: counted.join(' UNION ALL ') }, where.values];
}

/** How far a count in slices has come. */
export interface CountCursor {
  /** Position in `ALL_STATES`: an index has the tasks of one state after the other. */
  state: number;
  /** The last task of that state that was counted. */
  after?: { statusAt: string; taskId: string };
}

/** Counts the next tasks of one state, at most `limit`: how many, and the last of them. */
function countSliceStatement(filter: ListedTasks, { state, after }: CountCursor, limit: number): Call {
  const where = matching(filter, 'key');
  const counted = filter.state ?? ALL_STATES[state];
  const one = `${where.value(counted)}::smallint`;
  if (after) {
    const last = `${where.value(after.statusAt)}::timestamptz, ${where.value(after.taskId)}::uuid`;
    where.add(`(t.status_at, t.id) < (${last})`);
  }
  const maximum = where.value(limit);
  const text = `WITH slice AS (
    ${inStates({ state: counted }, (group) => newest(filter, where, { group, state: one, limit: maximum }))}
  )
  SELECT (SELECT count(*)::int FROM slice) AS tasks, status_at::text, id FROM slice
  ORDER BY status_at, id LIMIT 1`;
  return [{ text }, where.values];
}

/** The ids of the newest tasks of all states that the list asks for. */
function newestOfAll(filter: ListedTasks, where: Conditions, limit: string): string {
  const found = inStates(filter, (group, states) => {
    const wanted = `unnest(${where.value(states)}::smallint[]) AS s(state)`;
    return `SELECT newest.* FROM ${wanted}, LATERAL (
      ${newest(filter, where, { group, state: 's.state', limit })}
    ) newest`;
  });
  return `SELECT id FROM (${found}) found ORDER BY status_at DESC, id DESC LIMIT ${limit}`;
}

/** The newest tasks in a state: of each owner as many from an index, and of all these the newest. */
function newest(
  filter: ListedTasks,
  where: Conditions,
  { group, state, limit }: { group: StateGroup; state: string; limit: string },
): string {
  const order = `ORDER BY status_at DESC, id DESC LIMIT ${limit}`;
  const found = ofOwners(
    filter,
    where,
    (conditions) => `(SELECT t.status_at, t.id FROM ${group.from(state)}
      WHERE ${conditions} AND t.state = ${state} AND ${group.condition} ${order.replaceAll(/status_at|id/g, 't.$&')})`,
  );
  return filter.own?.unowned ? `SELECT status_at, id FROM (${found}) each_owners ${order}` : found;
}

/** A query for the tasks of a list in each group of states that it asks for, and all of them together. */
const inStates = (
  { state }: Pick<ListedTasks, 'state'>,
  query: (group: StateGroup, states: TaskState[]) => string,
): string =>
  STATE_GROUPS.flatMap((group) => {
    const states = (state === undefined ? ALL_STATES : [state]).filter(group.has);
    return states.length > 0 ? [`(${query(group, states)})`] : [];
  }).join(' UNION ALL ');

/**
 * One page, newest status first. `total` counts the tasks of all pages; null = uncounted, or more than can be
 * counted at every list, see `count`.
 */
export async function listTasks(
  on: TaskReads,
  filter: TaskFilter,
): Promise<{ tasks: StoredTask[]; total: number | null; more: boolean }> {
  const { pageSize, includeArtifacts: artifacts, historyLength } = filter;
  const content = { pageSize, artifacts, history: historyLength !== 0, readBytes: on.readBytes };
  const memory = filter.memory && (await RowMemory.take(filter.memory, content));
  // The caller has left.
  if (filter.memory && !memory) return { tasks: [], total: null, more: false };
  const page = pageStatement({ ...filter, historyLength: historyLimit(historyLength) });
  const count = filter.uncounted ? [] : [countStatement(filter)];
  const { lists, currentLists } = on.database;
  const reads = filter.mayLag ? lists : currentLists;
  const [rows = [], [counted] = []] = await reads.tenantQueries(filter.tenantId, [page, ...count]);
  const listed = rows.slice(0, pageSize) as TaskRow[];
  memory?.keep(listed);
  const tasks = await readTasks(on, listed, { ...filter, memory });
  const { total = null } = (counted ?? {}) as { total?: number | null };
  return { tasks, total, more: rows.length > filter.pageSize };
}

/** The number of tasks of a list in each state, counted up to `max`. @param filter.state is left aside */
export async function countStates(
  { database }: Pick<TaskReads, 'database'>,
  filter: ListedTasks,
  max: number,
): Promise<Map<TaskState, number>> {
  const [statement, values] = stateCountsStatement(filter, max);
  type CountRow = { state: TaskState; tasks: number };
  const rows = await database.lists.tenantQuery<CountRow>(filter.tenantId, statement, values);
  return new Map(rows.map(({ state, tasks }) => [state, tasks]));
}

/**
 * Tasks of a list with a text, newest status first: in a place of `SEARCH_PLACES`. It reads no more than `maxSearched` tasks and
 * stops early if that takes long.
 * @param filter.pageSize maximum number of tasks
 * @returns the tasks without their contents, how many it has looked at, and where to continue; no `next` = these were all
 */
export async function searchTasks(
  on: TaskReads,
  filter: ListedTasks & Pick<TaskFilter, 'after' | 'pageSize'>,
  text: string,
  maxSearched: number,
): Promise<{ tasks: StoredTask[]; searched: number; next?: TaskFilter['after'] }> {
  const { tenantId, pageSize } = filter;
  const until = performance.now() + SEARCH_MS;
  const found: FoundTask[] = [];
  let searched = 0;
  let next = filter.after;
  do {
    const size = Math.min(SEARCH_SLICE, maxSearched - searched);
    const [statement, values] = searchStatement({ ...filter, after: next }, text, size);
    type SearchRow = { status_at: Date; id: string; place: SearchPlace | null };
    const rows = await on.database.lists.tenantQuery<SearchRow>(tenantId, statement, values);
    for (const { status_at: statusAt, id, place } of rows) {
      searched += 1;
      next = { statusAt, taskId: id };
      if (place && found.push({ id, place }) === pageSize) break;
    }
    if (found.length === pageSize) break;
    if (rows.length < size) next = undefined;
  } while (next && searched < maxSearched && performance.now() < until);
  const tasks = found.length > 0 ? await readFound(on, tenantId, found, text) : [];
  return { tasks, searched, ...(next && { next }) };
}

async function readFound(
  on: TaskReads,
  tenantId: string,
  found: readonly FoundTask[],
  searched: string,
): Promise<StoredTask[]> {
  const [statement, values] = foundStatement(tenantId, found, searched);
  const rows = await on.database.lists.tenantQuery<TaskRow>(tenantId, statement, values);
  return readTasks(on, rows, { tenantId, historyLength: 0 });
}

/**
 * Counts the next tasks of a list, at most `limit`.
 * @param cursor where the slice before has ended
 * @returns how many, and where to continue; no cursor = that was all
 */
export async function countSlice(
  { database }: Pick<TaskReads, 'database'>,
  filter: ListedTasks,
  cursor: CountCursor,
  limit: number,
): Promise<{ tasks: number; cursor?: CountCursor }> {
  const [statement, values] = countSliceStatement(filter, cursor, limit);
  type SliceRow = { tasks: number; status_at: string; id: string };
  const [row] = await database.lists.tenantQuery<SliceRow>(filter.tenantId, statement, values);
  const tasks = row?.tasks ?? 0;
  if (row && tasks === limit) {
    return { tasks, cursor: { state: cursor.state, after: { statusAt: row.status_at, taskId: row.id } } };
  }
  const state = filter.state === undefined ? cursor.state + 1 : ALL_STATES.length;
  return state < ALL_STATES.length ? { tasks, cursor: { state } } : { tasks };
}
