import { BatchIsolation } from './batch-isolation.js';
import { failedTenantOf, isLockTimeout, isRolledBack } from './transient.js';
import { groupBy } from './group-by.js';

/** Limits of a group, and the properties of its items. */
interface GroupLimits<Item> {
  /** Maximum number of items of one flush. */
  maxItems: number;
  /** Maximum weight of one flush. An item that is heavier than that goes alone. */
  maxWeight?: number;
  /** The weight of an item, for instance its bytes. Unset: nothing weighs anything. */
  weigh?: (item: Item) => number;
  /** Maximum number of concurrent flushes of one batch key, and of concurrent shared flushes. */
  maxFlushes?: number;
  /** Two items with the same identity are never written at the same time: the later one waits for the end of the flush. */
  identify?: (item: Item) => string | undefined;
  /** Whether a batch key shares its flushes with other keys, decided by one of its items: all must give the same answer. Unset: no. */
  shares?: (item: Item) => boolean;
  /** The tenant of an item. Shared flushes need it to find the batch keys of the tenant that Postgres names. */
  tenantOf?: (item: Item) => string | undefined;
}

interface Waiting<Item, Outcome> {
  batchKey: string;
  item: Item;
  weight: number;
  identity: string | undefined;
  resolve: (outcome: Outcome) => void;
  reject: (reason: unknown) => void;
}

/** Flushes with a common maximum: those of one batch key, or the shared ones. */
interface Slots {
  flushes: number;
  isScheduled: boolean;
}

/** The items of a batch key that wait. */
interface Queue<Item, Outcome> extends Slots {
  batchKey: string;
  /** Whether it shares its flushes. It may change. Call `scheduleAll` after a change. */
  shares: boolean;
  /** Oldest first. */
  waiting: Waiting<Item, Outcome>[];
}

/** Two, so that a slow flush does not hold up the next one. */
export const MAX_FLUSHES = 2;
/** Weight of one flush: large writes do not hold up the small ones behind them. */
const MAX_WEIGHT = 1024 * 1024;
/**
 * Group commit: writes of many callers become one transaction. Items that come during a flush wait for the next one.
 * There is no timer. At light load a group has one item, and it is flushed at once. When the last group had several, an
 * item waits for the end of this turn of the event loop: requests that have arrived together go together.
 *
 * A batch is the items of one batch key, which one statement writes: they have one scope of row-level security. Keys that share their
 * flushes are written in one transaction, each with a statement of its own: each key contributes the same number of items, or all it
 * has. `flush` writes a whole group in **one transaction** and returns the outcome of each item, in the order of the items. It judges each
 * item on its own; a refusal of one is an outcome like any other, and not an error. It does not reject once the transaction is committed.
 *
 * If `flush` rejects:
 * - The transaction is certainly rolled back, and Postgres names a tenant: the keys of this tenant are isolated and flushed alone. The other
 *   keys are flushed once more together.
 * - It is rolled back, and the tenant is unknown, or the flush of the others fails as well: each key is a suspect, and is flushed alone,
 *   all at once (`BatchIsolation`).
 * - A group of one key is rolled back: its halves are flushed one after the other, and so on. In the end only the item that Postgres refuses
 *   rejects.
 * - It is unknown whether it was committed (the connection was lost), or Postgres was too slow: all items of the group reject with that
 *   error.
 */
export class GroupCommit<Item, Outcome> {
  /** Queues with waiting items or with flushes of their own, by batch key. The most recently flushed one is the last. */
  private readonly queues = new Map<string, Queue<Item, Outcome>>();
  private readonly shared: Slots = { flushes: 0, isScheduled: false };
  /** Identities of the items that are being flushed. */
  private readonly identities = new Set<string>();
  private readonly isolation = new BatchIsolation();
  private readonly limits: Required<GroupLimits<Item>>;
  /** Number of items of the last group, of any key. */
  private lastGroupSize = 1;

  /** @param flush gets the items of one batch key, or of keys that share */
  constructor(
    private readonly flush: (items: readonly Item[]) => Promise<readonly Outcome[]>,
    limits: GroupLimits<Item>,
  ) {
    this.limits = {
      maxWeight: MAX_WEIGHT,
      weigh: () => 0,
      maxFlushes: MAX_FLUSHES,
      identify: () => undefined,
      shares: () => false,
      tenantOf: () => undefined,
      ...limits,
    };
  }

  /**
   * Writes an item with others of its batch key.
   * @returns its outcome, after the commit
   */
  submit(batchKey: string, item: Item): Promise<Outcome> {
    const weight = this.limits.weigh(item);
    const identity = this.limits.identify(item);
    const queue = this.queues.get(batchKey) ?? this.open(batchKey, item);
    return new Promise((resolve, reject) => {
      queue.waiting.push({ batchKey, item, weight, identity, resolve, reject });
      this.schedule(queue);
    });
  }

  private open(batchKey: string, item: Item): Queue<Item, Outcome> {
    const shares = this.limits.shares(item) && this.isolation.mayShare(batchKey);
    const queue = { batchKey, shares, waiting: [], flushes: 0, isScheduled: false };
    this.queues.set(batchKey, queue);
    return queue;
  }

  private slotsOf(queue: Queue<Item, Outcome>): Slots {
    return queue.shares ? this.shared : queue;
  }

  private schedule(queue: Queue<Item, Outcome>): void {
    const slots = this.slotsOf(queue);
    if (slots.isScheduled || queue.waiting.length === 0 || slots.flushes >= this.limits.maxFlushes) return;
    slots.isScheduled = true;
    const flush = (): void => {
      slots.isScheduled = false;
      void this.flushNext(slots);
    };
    if (this.lastGroupSize > 1 || slots.flushes > 0) setImmediate(flush);
    else process.nextTick(flush);
  }

  private async flushNext(slots: Slots): Promise<void> {
    const queues = [...this.queues.values()].filter((queue) => this.slotsOf(queue) === slots);
    const group = this.takeGroup(queues);
    // All items wait for a flush with the same identity. Its end calls `scheduleAll`.
    if (group.length === 0) return;
    this.lastGroupSize = group.length;
    slots.flushes += 1;
    // There may be more than one group holds.
    for (const queue of queues) this.schedule(queue);
    await this.write(group);
    slots.flushes -= 1;
    this.scheduleAll();
  }

  /** After a flush any key may be next: its items may have waited for the end of a flush with their identity. */
  private scheduleAll(): void {
    for (const queue of this.queues.values()) {
      if (queue.waiting.length === 0 && queue.flushes === 0) this.queues.delete(queue.batchKey);
      else this.schedule(queue);
    }
  }

  /** The oldest items that may go together, of each key in turn. None: all of them wait for the end of a flush. */
  private takeGroup(queues: readonly Queue<Item, Outcome>[]): Waiting<Item, Outcome>[] {
    const { maxItems, maxWeight } = this.limits;
    const group: Waiting<Item, Outcome>[] = [];
    const turns = queues.map((queue) => ({
      queue,
      at: 0,
      blocked: [] as Waiting<Item, Outcome>[],
      taken: 0,
    }));
    let total = 0;
    for (let open = turns; open.length > 0;) {
      open = open.filter((turn) => {
        if (group.length === maxItems) return false;
        const next = this.nextOf(turn);
        if (!next || (group.length > 0 && total + next.weight > maxWeight)) return false;
        if (next.identity !== undefined) this.identities.add(next.identity);
        total += next.weight;
        group.push(next);
        turn.at += 1;
        turn.taken += 1;
        return true;
      });
    }
    for (const { queue, at, blocked, taken } of turns) {
      queue.waiting = [...blocked, ...queue.waiting.slice(at)];
      if (taken === 0) continue;
      this.queues.delete(queue.batchKey);
      this.queues.set(queue.batchKey, queue);
    }
    return group;
  }

  /** Skips items whose identity is being flushed. */
  private nextOf(turn: {
    queue: Queue<Item, Outcome>;
    at: number;
    blocked: Waiting<Item, Outcome>[];
  }): Waiting<Item, Outcome> | undefined {
    for (; ; turn.at += 1) {
      const next = turn.queue.waiting[turn.at];
      if (next?.identity === undefined || !this.identities.has(next.identity)) return next;
      turn.blocked.push(next);
    }
  }

  /**
   * Never rejects: every caller gets its own outcome.
   * @param isRest of a group without the keys that Postgres has named
   * @returns whether the first try has succeeded
   */
  private async write(group: readonly Waiting<Item, Outcome>[], isRest = false): Promise<boolean> {
    let outcomes: readonly Outcome[];
    try {
      outcomes = await this.flush(group.map(({ item }) => item));
    } catch (error) {
      const batches = groupBy(group, ({ batchKey }) => batchKey);
      const isLost = !isRolledBack(error) && !(batches.size > 1 && isLockTimeout(error));
      if (isLost || group.length === 1) this.finish(group, ({ reject }) => reject(error));
      else if (batches.size > 1) return this.separate(batches, isRest ? [] : this.namedBy(error, group));
      else await this.halve(group);
      return false;
    }
    this.finish(group, ({ resolve, reject }, i) => {
      if (i < outcomes.length) resolve(outcomes[i] as Outcome);
      else reject(new Error('The flush has returned no outcome for this item'));
    });
    return true;
  }

  private async halve(group: readonly Waiting<Item, Outcome>[]): Promise<void> {
    const half = Math.ceil(group.length / 2);
    await this.write(group.slice(0, half));
    await this.write(group.slice(half));
  }

  /**
   * Writes the batches of a shared transaction that was rolled back. It does not wait for those that are written alone: other flushes
   * need not wait for them either.
   * @param named the keys of the tenant that Postgres has named; none = it is unknown
   */
  private async separate(
    batches: ReadonlyMap<string, readonly Waiting<Item, Outcome>[]>,
    named: readonly string[],
  ): Promise<boolean> {
    if (named.length === 0) {
      for (const [key, its] of batches) void this.writeAlone(key, its, this.isolation.suspect(key));
      return false;
    }
    for (const key of named) {
      this.isolation.isolate(key);
      void this.writeAlone(key, batches.get(key) ?? []);
    }
    const rest = [...batches].filter(([key]) => !named.includes(key)).flatMap(([, its]) => its);
    return rest.length > 0 && this.write(rest, true);
  }

  /**
   * Writes a batch in a transaction of its own.
   * @param wasWritten called after the first try, with whether it has succeeded
   */
  private async writeAlone(
    key: string,
    batch: readonly Waiting<Item, Outcome>[],
    wasWritten?: (succeeded: boolean) => void,
  ): Promise<void> {
    this.setShares(key, false);
    const succeeded = await this.write(batch);
    wasWritten?.(succeeded);
    if (wasWritten && this.isolation.mayShare(key)) this.setShares(key, true);
    this.scheduleAll();
  }

  /** The keys of the tenant whose statement has failed, if Postgres has named it. */
  private namedBy(error: unknown, group: readonly Waiting<Item, Outcome>[]): string[] {
    const tenantId = failedTenantOf(error);
    if (tenantId === undefined) return [];
    const its = group.filter(({ item }) => this.limits.tenantOf(item) === tenantId);
    return [...new Set(its.map(({ batchKey }) => batchKey))];
  }

  private setShares(key: string, shares: boolean): void {
    const queue = this.queues.get(key);
    if (queue) queue.shares = shares;
  }

  private finish(
    group: readonly Waiting<Item, Outcome>[],
    answer: (waiting: Waiting<Item, Outcome>, i: number) => void,
  ): void {
    for (const { identity } of group) if (identity !== undefined) this.identities.delete(identity);
    group.forEach(answer);
  }
}
