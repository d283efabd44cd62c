import type { Database, Statement, Values } from '../connection/database.js';
import { GroupCommit } from '../connection/group-commit.js';
import { byTenant, groupBy } from '../connection/group-by.js';
import { acceptTurns, hasExtras, NO_QUOTA } from './accept-turns.js';
import { CREATE, createValues, MAX_SHARED_BYTES } from './create-batch.js';
import type { CreatedRow, NewTaskRow } from './new-task-row.js';
import type { NewTask } from './task-records.js';
import { retryPolicy } from './retry-policy.js';

/** Tasks of one transaction. */
const MAX_TASKS = 64;
/** A message may be in the batch twice: by itself, and in the first event of its task. */
const MAX_BYTES = 4 * 1024 * 1024;

/** The group commit of new tasks: creates tasks without an id of the caller's, many in one transaction. */
export class CreationBatches {
  private readonly groups: GroupCommit<NewTaskRow, CreatedRow | undefined>;

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

  /** Opens connections and prepares the statement, so that the first tasks do not wait. Writes nothing. */
  prepare(): Promise<void> {
    return this.database.prepare((tenantId) => [[CREATE, createValues(tenantId, [])]]);
  }

  /**
   * Creates a task. A child, or a task with a push config, has a transaction of its own.
   * @returns its outcome
   */
  async create(row: NewTaskRow): Promise<CreatedRow | undefined> {
    const { child, push } = row.input;
    if (!hasExtras({ child, push })) return this.groups.submit(keyOf(row), row);
    const [created] = await this.write([row], { child, push });
    return created;
  }

  private async flush(rows: readonly NewTaskRow[]): Promise<(CreatedRow | undefined)[]> {
    const [first] = rows;
    if (!first || !canShare(first)) return this.write(rows);
    const tenants = byTenant(rows, ({ input }) => input.tenantId).map(([tenantId, its]) => {
      const batches = [...groupBy(its, keyOf).values()];
      const calls = batches.map((batch): [Statement, Values] => [CREATE, createValues(tenantId, batch)]);
      return { tenantId, batches, calls };
    });
    const answers = await this.database.tenantsQueries(
      tenants.map(({ tenantId, calls }) => [tenantId, calls]),
    );
    const created = new Map<NewTaskRow, CreatedRow | undefined>();
    for (const [i, { batches }] of tenants.entries()) {
      const answered = (answers[i] ?? []) as CreatedRow[][];
      batches.forEach((batch, k) => batch.forEach((row, n) => created.set(row, answered[k]?.[n])));
    }
    return rows.map((row) => created.get(row));
  }

  private async write(
    rows: readonly NewTaskRow[],
    extras?: Pick<NewTask, 'child' | 'push'>,
  ): Promise<CreatedRow[]> {
    const [first] = rows;
    if (!first) return [];
    const { tenantId, quota } = first.input;
    return acceptTurns<CreatedRow>(this.database, {
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

/** Whether the transaction of a task can be that of other tenants, too: it locks nothing of its tenant, and is small. */
const canShare = (row: NewTaskRow): boolean => {
  const { exact, maxStoredBytes = null } = row.input.quota ?? NO_QUOTA;
  return !exact && maxStoredBytes === null && row.bytes <= MAX_SHARED_BYTES;
};

/** The batch key: what the statement has only once for a batch. Runs in flight are limited one by one. */
const keyOf = (row: NewTaskRow): string => {
  const { tenantId, quota, retry } = row.input;
  return JSON.stringify([
    tenantId,
    canShare(row),
    quota?.exact,
    quota?.maxWaiting,
    quota?.maxStoredBytes,
    retry && retryPolicy(retry),
  ]);
};
