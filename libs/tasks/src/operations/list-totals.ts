import { COUNTED_EXACTLY, type CountCursor, type ListedTasks, TaskStore } from '@baton/database';
import { Logger, within } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';

/** How long a list waits for its total. */
const WAIT_MS = 200;
/** Tasks that are counted by one statement. */
const SLICE_TASKS = 20_000;
/** Maximum age of a total: this time, or this multiple of the time it took to count it. */
const FRESH = { ms: 10_000, times: 20 };
/** Totals that this process keeps, each of a filter of a tenant. */
const MAX_LISTS = 1_000;
/** Shorter lists are counted by their own query. */
const AT_LEAST = COUNTED_EXACTLY + 1;

/** The total of one list. */
interface Total {
  listed: ListedTasks;
  /** The result of the last complete count. */
  count?: number;
  freshUntil: number;
  /** Set while tasks are counted. */
  counting?: { soFar: number; cursor: CountCursor; ms: number; done: Promise<void>; end(): void };
}

/**
 * The totals of lists that are too long to count for every page. They are counted in the background, slice by slice, on
 * one connection. A list waits a moment for its total. Then it gets the last total, or the number of tasks counted so
 * far. A failed count does not fail the list.
 */
@Injectable()
export class ListTotals {
  private readonly totals = new LRUCache<string, Total>({ max: MAX_LISTS });
  private readonly queue = new Set<Total>();
  private isWorking = false;

  constructor(
    private readonly tasks: TaskStore,
    private readonly logger: Logger,
  ) {}

  /** The number of tasks of a list, if it was counted recently. */
  known(listed: ListedTasks): number | undefined {
    const total = this.totals.get(JSON.stringify(listed));
    return total && performance.now() < total.freshUntil ? total.count : undefined;
  }

  /**
   * The number of tasks of a list that is too long for its own query. Until the first count has ended, it is a lower
   * bound.
   */
  async total(listed: ListedTasks): Promise<number> {
    const key = JSON.stringify(listed);
    const total = this.totals.get(key) ?? { listed, freshUntil: 0 };
    this.totals.set(key, total);
    // Also after a count that failed.
    if (performance.now() < total.freshUntil) return total.count ?? AT_LEAST;
    await within(this.count(total), WAIT_MS);
    return total.count ?? Math.max(total.counting?.soFar ?? 0, AT_LEAST);
  }

  /** Resolves when the current count has ended or failed. */
  private count(total: Total): Promise<void> {
    if (!total.counting) {
      let end: () => void = () => undefined;
      const done = new Promise<void>((resolve) => (end = resolve));
      total.counting = { soFar: 0, cursor: { state: 0 }, ms: 0, done, end };
      this.queue.add(total);
      if (!this.isWorking) void this.work();
    }
    return total.counting.done;
  }

  /** Count a slice of each list in turn until all are counted. */
  private async work(): Promise<void> {
    this.isWorking = true;
    while (this.queue.size > 0) {
      for (const total of this.queue) {
        if (await this.countSlice(total)) continue;
        this.queue.delete(total);
        total.counting?.end();
        delete total.counting;
      }
    }
    this.isWorking = false;
  }

  /** @returns whether there are more */
  private async countSlice(total: Total): Promise<boolean> {
    const { listed, counting } = total;
    if (!counting) return false;
    const since = performance.now();
    try {
      const { tasks, cursor } = await this.tasks.countSlice(listed, counting.cursor, SLICE_TASKS);
      counting.soFar += tasks;
      counting.ms += performance.now() - since;
      if (cursor) counting.cursor = cursor;
      else total.count = counting.soFar;
      if (cursor) return true;
    } catch (error) {
      this.logger.warn('counting a list failed; its last total is shown', { err: error });
    }
    total.freshUntil = performance.now() + Math.max(FRESH.ms, counting.ms * FRESH.times);
    return false;
  }
}
