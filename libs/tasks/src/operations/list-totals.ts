import { type ListedTasks, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';

/** How old a total may be, in milliseconds. */
const FRESH_MS = 10_000;
const MAX_LISTS = 1_000;

/**
 * The totals of lists that are too long to be counted for every page: a count reads all their tasks. Whoever
 * turns the pages of such a list makes one count in ten seconds and process.
 */
@Injectable()
export class ListTotals {
  private readonly totals: LRUCache<string, { count: number }, ListedTasks>;

  constructor(tasks: TaskStore) {
    this.totals = new LRUCache({
      max: MAX_LISTS,
      ttl: FRESH_MS,
      // Of the calls that miss a total at once one counts, and the others wait for it.
      fetchMethod: async (_key, _stale, { context }) => ({ count: await tasks.count(context) }),
      ignoreFetchAbort: true,
    });
  }

  /** The number of tasks of a list, if it was counted in the last ten seconds. */
  known(listed: ListedTasks): number | undefined {
    return this.totals.get(JSON.stringify(listed))?.count;
  }

  /** The number of tasks of a list, as it was at most ten seconds ago. */
  async of(listed: ListedTasks): Promise<number> {
    const total = await this.totals.fetch(JSON.stringify(listed), { context: listed });
    return total?.count ?? 0;
  }
}
