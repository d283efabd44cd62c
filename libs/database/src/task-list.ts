import type { Statement, Values } from './database.js';
import type { TaskFilter } from './records.js';
import { ALL_STATES, taskColumns } from './task-row.js';

export type Call = [Statement, Values];

/** Collects the conditions of a query and the values they name. */
class Conditions {
  readonly values: unknown[] = [];
  private readonly terms: string[] = [];

  /** @returns the placeholder of the value */
  value(value: unknown): string {
    return `$${this.values.push(value).toString()}`;
  }

  add(term: string): void {
    this.terms.push(term);
  }

  toString(): string {
    return this.terms.join(' AND ');
  }
}

/** Totals up to here are counted by every list; larger ones only now and then (`countStatement`). */
const COUNTED_EXACTLY = 10_000;

/** What a list is made of: everything about a page but its position. */
export type ListedTasks = Pick<TaskFilter, 'tenantId' | 'agentId' | 'contextId' | 'state' | 'since'>;

/**
 * The statement that reads a page. It is made to measure, without a name: a plan for every combination of
 * filters would serve none of them. However many tasks there are, it reads the newest of each state from an
 * index and then the rows of one page, which has one row more than asked for if there is a next one.
 */
export function pageStatement(
  filter: Omit<TaskFilter, 'historyLength'> & { historyLength: number | null },
): Call {
  const where = matching(filter, 'id');
  if (filter.after) {
    const { statusAt, taskId } = filter.after;
    where.add(`(t.status_at, t.id) < (${where.value(statusAt)}::timestamptz, ${where.value(taskId)}::uuid)`);
  }
  const states = where.value(filter.state === undefined ? ALL_STATES : [filter.state]);
  const limit = where.value(filter.pageSize + 1);
  const columns = taskColumns(`${where.value(filter.historyLength)}::int`, filter.includeArtifacts, 'list');
  const text = `SELECT ${columns} FROM (
    SELECT newest.id FROM unnest(${states}::smallint[]) AS s(state), LATERAL (
      SELECT t.status_at, t.id FROM tasks t WHERE ${where.toString()} AND t.state = s.state
      ORDER BY t.status_at DESC, t.id DESC LIMIT ${limit}
    ) newest ORDER BY newest.status_at DESC, newest.id DESC LIMIT ${limit}
  ) page JOIN tasks t ON t.tenant_id = ${TENANT} AND t.id = page.id
  ORDER BY t.status_at DESC, t.id DESC`;
  return [{ text }, where.values];
}

/** Counts the tasks of all pages. @param exact whether to count on when there are more than every list counts */
export function countStatement(filter: ListedTasks, exact: boolean): Call {
  const where = matching(filter, 'key');
  if (filter.state !== undefined) where.add(`t.state = ${where.value(filter.state)}`);
  const limit = exact ? '' : `LIMIT ${(COUNTED_EXACTLY + 1).toString()}`;
  const found = `SELECT FROM tasks t WHERE ${where.toString()} ${limit}`;
  const total = exact ? 'count(*)' : `nullif(count(*), ${(COUNTED_EXACTLY + 1).toString()})`;
  return [{ text: `SELECT ${total}::int AS total FROM (${found}) found` }, where.values];
}

/** The placeholder of the tenant, which every statement has first. */
const TENANT = '$1';

/**
 * @param context what tells contexts apart: the index has only the key, so the id decides, which costs a look at
 * each row. A count does without: two ids of one key would have to be made on purpose.
 */
function matching({ tenantId, agentId, contextId, since }: ListedTasks, context: 'id' | 'key'): Conditions {
  const where = new Conditions();
  where.add(`t.tenant_id = ${where.value(tenantId)}`);
  if (agentId !== undefined) where.add(`t.agent_id = ${where.value(agentId)}`);
  if (contextId !== undefined) {
    const id = where.value(contextId);
    where.add(`t.context_key = md5(${id}::text)::uuid`);
    if (context === 'id') where.add(`t.context_id = ${id}::text`);
  }
  if (since) where.add(`t.status_at >= ${where.value(since)}`);
  return where;
}
