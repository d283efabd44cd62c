import type { QueryResultRow } from 'pg';
import type { Database, Statement, Values } from '../connection/database.js';
import { GroupCommit } from '../connection/group-commit.js';
import { byTenant } from '../connection/group-by.js';
import { isLockTimeout } from '../connection/transient.js';
import { LargeWriteShares } from './large-write-shares.js';

/** Maximum number of items of one transaction. */
const MAX_ITEMS = 64;
/** Events and artifacts of one transaction, in characters. */
const MAX_CHARS = 1024 * 1024;
/**
 * Maximum size of an item that shares its transaction with other tenants, which wait for it. A transaction may have 64 of them. The
 * events of a stream that a person reads are smaller.
 */
const MAX_SHARED_CHARS = 8 * 1024;
/** Items of a tenant that wait for locks at the same time. Each has a connection, and other tenants need some, too. */
const MAX_ALONE = 4;

/**
 * A batch does not wait long for a lock of another transaction: all its runs would wait. An item without a batch may wait: it
 * holds up its own run only.
 */
const WAIT_SHORTLY: Statement = {
  name: 'runs-wait-shortly',
  text: `SELECT set_config('lock_timeout', '500ms', true)`,
};

/** A statement that executes an operation for a batch of items, and reads the result of each item from its rows. */
export interface BatchStatement<Result> {
  statement: Statement;
  values: Values;
  /** @returns the result of each item, in their order; undefined: it was refused */
  results: (rows: readonly QueryResultRow[]) => (Result | undefined)[];
}

/** An operation that one statement does for many runs of a tenant at once. It judges each item on its own. */
export interface BatchOperation<Item extends { tenantId: string }, Result> {
  /** @param items of one tenant, none of them with the identity of another one */
  prepare(items: readonly Item[]): BatchStatement<Result>;
  /** The row that an item changes, among those of its tenant: a statement changes a row once. */
  identify(item: Item): string;
  /** How large an item is, in characters. Unset: it is small. */
  charsOf?(item: Item): number;
}

type AnyOperation = BatchOperation<{ tenantId: string }, unknown>;

/** An item of a batch, and its operation. */
interface BatchWrite {
  operation: AnyOperation;
  item: { tenantId: string };
}

/** The result, or the promise of one: the item was written in a transaction of its own. */
type Outcome = { result: unknown } | { alone: Promise<unknown> };

const tenantOf = ({ item }: BatchWrite): string => item.tenantId;
const charsOf = ({ operation, item }: BatchWrite): number => operation.charsOf?.(item) ?? 0;
const isHeavy = (write: BatchWrite): boolean => charsOf(write) > MAX_SHARED_CHARS;

/**
 * The group commit of runs. Items that arrive while a transaction is under way go together in the next one, those of each tenant
 * in its own scope. Items of one operation share a statement.
 */
export class RunBatches {
  private readonly groups: GroupCommit<BatchWrite, Outcome>;
  /** Items that wait for a lock, each in a transaction of its own. */
  private readonly alone = new GroupCommit<BatchWrite, unknown>((writes) => this.write(writes), {
    maxItems: 1,
    maxFlushes: MAX_ALONE,
  });

  private readonly large = new LargeWriteShares();

  /** @param operations in the order in which a transaction does them */
  constructor(
    private readonly database: Pick<Database, 'tenantsQueries' | 'prepare'>,
    private readonly operations: readonly AnyOperation[],
  ) {
    this.groups = new GroupCommit((writes) => this.flush(writes), {
      maxItems: MAX_ITEMS,
      maxWeight: MAX_CHARS,
      weigh: charsOf,
      shares: (write) => !isHeavy(write),
      tenantOf,
      identify: ({ operation, item }) => `${item.tenantId} ${operation.identify(item)}`,
    });
  }

  /** Opens connections and prepares the statements, so that the first runs do not wait. Writes nothing. */
  prepare(): Promise<void> {
    return this.database.prepare(() => [
      [WAIT_SHORTLY, []],
      ...this.operations.map((operation): [Statement, Values] => {
        const { statement, values } = operation.prepare([]);
        return [statement, values];
      }),
    ]);
  }

  /**
   * Does an operation for one item, in a batch with others.
   * @returns its result, after the commit; undefined: it was refused
   */
  async submit<Item extends { tenantId: string }, Result>(
    operation: BatchOperation<Item, Result>,
    item: Item,
  ): Promise<Result | undefined> {
    const write: BatchWrite = { operation, item };
    const { tenantId } = item;
    this.large.noteWrite(tenantId);
    const outcome = await this.groups.submit(isHeavy(write) ? `${tenantId} heavy` : tenantId, write);
    return ('alone' in outcome ? await outcome.alone : outcome.result) as Result | undefined;
  }

  /** @param writes of one tenant, or small ones of several */
  private async flush(writes: readonly BatchWrite[]): Promise<Outcome[]> {
    const [first] = writes;
    if (!first || !isHeavy(first)) return this.writeAll(writes);
    return this.large.runLargeWrite(tenantOf(first), () => this.writeAll(writes));
  }

  private async writeAll(writes: readonly BatchWrite[]): Promise<Outcome[]> {
    try {
      return (await this.write(writes)).map((result) => ({ result }));
    } catch (error) {
      if (writes.length === 1 || !isLockTimeout(error) || byTenant(writes, tenantOf).length > 1) throw error;
      // Not awaited: only the run waits that the lock is about.
      return writes.map((write) => ({ alone: this.alone.submit(tenantOf(write), write) }));
    }
  }

  /** One transaction. @returns the result of each item */
  private async write(writes: readonly BatchWrite[]): Promise<unknown[]> {
    const tenants = byTenant(writes, tenantOf).map(([tenantId, its]) => ({
      tenantId,
      batches: this.batchesOf(its),
    }));
    // Several tenants wait even shorter (`tenantsQueries`).
    const first: [Statement, Values][] =
      writes.length > 1 && tenants.length === 1 ? [[WAIT_SHORTLY, []]] : [];
    const answers = await this.database.tenantsQueries(
      tenants.map(({ tenantId, batches }) => [
        tenantId,
        [...first, ...batches.map(({ call }): [Statement, Values] => [call.statement, call.values])],
      ]),
    );
    const results = new Map<BatchWrite, unknown>();
    for (const [i, { batches }] of tenants.entries()) {
      for (const [k, { its, call }] of batches.entries()) {
        const found = call.results(answers[i]?.[first.length + k] ?? []);
        its.forEach((write, n) => results.set(write, found[n]));
      }
    }
    return writes.map((write) => results.get(write));
  }

  /** The statements for the items of one tenant, in the order of the operations. */
  private batchesOf(writes: readonly BatchWrite[]): { its: BatchWrite[]; call: BatchStatement<unknown> }[] {
    return this.operations.flatMap((operation) => {
      const its = writes.filter((write) => write.operation === operation);
      return its.length === 0 ? [] : [{ its, call: operation.prepare(its.map(({ item }) => item)) }];
    });
  }
}
