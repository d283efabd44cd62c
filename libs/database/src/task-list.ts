import type { Statement, Values } from './database.js';
import type { TaskFilter } from './records.js';
import { taskColumns } from './task-row.js';

type Call = [Statement, Values];

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

/**
 * The statements that read a page and count all of its pages. They are made to measure, without a name: a
 * plan for every combination of filters would serve none of them.
 * The page holds one row more than asked for if there is a next one.
 */
export function listStatement(filter: Omit<TaskFilter, 'historyLength'> & { historyLength: number | null }): {
  page: Call;
  count: Call;
} {
  const counted = matching(filter);
  const paged = matching(filter);
  if (filter.after) {
    const { statusAt, taskId } = filter.after;
    paged.add(`(t.status_at, t.id) < (${paged.value(statusAt)}::timestamptz, ${paged.value(taskId)}::uuid)`);
  }
  const columns = taskColumns(`${paged.value(filter.historyLength)}::int`, filter.includeArtifacts);
  const limit = paged.value(filter.pageSize + 1);
  const page = `SELECT ${columns} FROM tasks t WHERE ${paged.toString()}
    ORDER BY t.status_at DESC, t.id DESC LIMIT ${limit}`;
  const count = `SELECT count(*)::int AS total FROM tasks t WHERE ${counted.toString()}`;
  return { page: [{ text: page }, paged.values], count: [{ text: count }, counted.values] };
}

function matching({
  tenantId,
  agentId,
  contextId,
  state,
  since,
}: Omit<TaskFilter, 'historyLength'>): Conditions {
  const where = new Conditions();
  where.add(`t.tenant_id = ${where.value(tenantId)}`);
  if (agentId !== undefined) where.add(`t.agent_id = ${where.value(agentId)}`);
  if (contextId !== undefined) {
    // The key is in the index, the id decides.
    const id = where.value(contextId);
    where.add(`t.context_key = md5(${id}::text)::uuid AND t.context_id = ${id}::text`);
  }
  if (state !== undefined) where.add(`t.state = ${where.value(state)}`);
  if (since) where.add(`t.status_at >= ${where.value(since)}`);
  return where;
}
