import { LRUCache } from 'lru-cache';
import { failedTenantOf, isLockTimeout, isRolledBack } from './transient.js';

/** How much one flush takes. */
interface GroupLimits<Item> {
  /** Maximum number of items of one flush. */
  maxItems: number;
  /** Maximum weight of one flush. An item that is heavier than that goes alone. */
  maxWeight?: number;
  /** The weight of an item, for instance its bytes. Unset: nothing weighs anything. */
  weigh?: (item: Item) => number;
  /** Maximum number of flushes of one lane that are under way at the same time, and of those that lanes share. */
  maxFlushes?: number;
  /** Two items with the same identity are never written at the same time: the later one waits for the end of the flush. */
  identify?: (item: Item) => string | undefined;
  /** Whether a lane shares its flushes with other lanes, by one of its items: all of them must say the same. Unset: no. */
  shares?: (item: Item) => boolean;
  /** Whose item it is. Needed where lanes share: to know the lanes of a tenant that is to blame. */
  tenantOf?: (item: Item) => string | undefined;
}

interface Waiting<Item, Outcome> {
  lane: string;
  item: Item;
  weight: number;
  identity: string | undefined;
  resolve: (outcome: Outcome) => void;
  reject: (reason: unknown) => void;
}

/** Whose flushes are counted together: those of a lane, or those that lanes share. */
interface Slots {
  flushes: number;
  isScheduled: boolean;
}

/** Items that have one scope of row-level security, and all else in common that a statement has only once. */
interface Lane<Item, Outcome> extends Slots {
  name: string;
  /** Whether it shares its flushes. It may change. Call `goOn` after a change. */
  shares: boolean;
  /** Oldest first. */
  waiting: Waiting<Item, Outcome>[];
}

/** Two, so that a slow flush holds nobody who comes after it. */
export const MAX_FLUSHES = 2;
const MAX_WEIGHT = 1024 * 1024;
/** How long a lane shares no flushes after it was to blame for one, or until it is empty; and how many such lanes are known. */
const APART_MS = 10_000;
const MAX_APART = 10_000;
/** If nobody knows who is to blame for a rollback: a lane is if its own part fails as well, or takes as long as this. */
const SLOW_MS = 100;

/**
 * Group commit: writes of many callers become one transaction. Items that come during a flush wait for the next one.
 * There is no timer. At light load a group has one item, and it is flushed at once. When the last group had several, a
 * lane waits for the end of this turn of the event loop: requests that have arrived together go together.
 *
 * A lane is what one statement can write. Lanes that share their flushes are written in one transaction, each with a statement
 * of its own: a lane has as many items in it as the others, or all it has. `flush` writes a whole group in **one transaction**
 * and returns the outcome of each item, in the order of the items. It judges each item on its own; a refusal of one is an
 * outcome like any other, and not an error. It does not reject once the transaction is committed.
 *
 * If `flush` rejects and the transaction is certainly rolled back, the lanes of the tenant that is to blame are flushed alone, and
 * share no flushes for a while; the other lanes are flushed once more together. If it is not known who is to blame, or that fails
 * as well, each lane is flushed alone, all at once. Then the halves of a lane's group are flushed one after the other, and so on:
 * in the end only the item that is to blame rejects. If nobody knows whether it was committed (the connection was lost), or Postgres was too
 * slow, all items of the group reject with that error.
 */
export class GroupCommit<Item, Outcome> {
  /** Those with items that wait, or with flushes of their own. The one that had its turn last is the last. */
  private readonly lanes = new Map<string, Lane<Item, Outcome>>();
  private readonly shared: Slots = { flushes: 0, isScheduled: false };
  /** Of the items that are being flushed. */
  private readonly identities = new Set<string>();
  /** Lanes that share no flushes, by their names. */
  private readonly apart = new LRUCache<string, true>({
    maxSize: MAX_APART,
    sizeCalculation: () => 1,
    ttl: APART_MS,
  });
  private readonly limits: Required<GroupLimits<Item>>;
  /** Number of items of the last group, of any lane. */
  private lately = 1;

  /** @param flush gets the items of one lane, or of lanes that share */
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
   * Write an item with others of its lane.
   * @returns its outcome, after the commit
   */
  submit(lane: string, item: Item): Promise<Outcome> {
    const weight = this.limits.weigh(item);
    const identity = this.limits.identify(item);
    const found = this.lanes.get(lane) ?? this.open(lane, item);
    return new Promise((resolve, reject) => {
      found.waiting.push({ lane, item, weight, identity, resolve, reject });
      this.schedule(found);
    });
  }

  private open(name: string, item: Item): Lane<Item, Outcome> {
    const shares = this.limits.shares(item) && !this.apart.has(name);
    const lane = { name, shares, waiting: [], flushes: 0, isScheduled: false };
    this.lanes.set(name, lane);
    return lane;
  }

  private slotsOf(lane: Lane<Item, Outcome>): Slots {
    return lane.shares ? this.shared : lane;
  }

  private schedule(lane: Lane<Item, Outcome>): void {
    const slots = this.slotsOf(lane);
    if (slots.isScheduled || lane.waiting.length === 0 || slots.flushes >= this.limits.maxFlushes) return;
    slots.isScheduled = true;
    const flush = (): void => {
      slots.isScheduled = false;
      void this.flushNext(slots);
    };
    if (this.lately > 1 || slots.flushes > 0) setImmediate(flush);
    else process.nextTick(flush);
  }

  private async flushNext(slots: Slots): Promise<void> {
    const lanes = [...this.lanes.values()].filter((lane) => this.slotsOf(lane) === slots);
    const group = this.takeGroup(lanes);
    // Everybody waits for a twin: the end of its flush comes here again.
    if (group.length === 0) return;
    this.lately = group.length;
    slots.flushes += 1;
    // There may be more than one group holds.
    for (const lane of lanes) this.schedule(lane);
    await this.write(group);
    slots.flushes -= 1;
    this.goOn();
  }

  /** After a flush any lane may have its turn: its items may have waited for a twin. */
  private goOn(): void {
    for (const lane of this.lanes.values()) {
      if (lane.waiting.length === 0 && lane.flushes === 0) this.lanes.delete(lane.name);
      else this.schedule(lane);
    }
  }

  /** The oldest items that may go together, of each lane in turn. None: all of them wait for the end of a flush. */
  private takeGroup(lanes: readonly Lane<Item, Outcome>[]): Waiting<Item, Outcome>[] {
    const { maxItems, maxWeight } = this.limits;
    const group: Waiting<Item, Outcome>[] = [];
    const turns = lanes.map((lane) => ({ lane, at: 0, twins: [] as Waiting<Item, Outcome>[], taken: 0 }));
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
    for (const { lane, at, twins, taken } of turns) {
      lane.waiting = [...twins, ...lane.waiting.slice(at)];
      if (taken === 0) continue;
      this.lanes.delete(lane.name);
      this.lanes.set(lane.name, lane);
    }
    return group;
  }

  /** Passes over items whose twin is being flushed. */
  private nextOf(turn: {
    lane: Lane<Item, Outcome>;
    at: number;
    twins: Waiting<Item, Outcome>[];
  }): Waiting<Item, Outcome> | undefined {
    for (; ; turn.at += 1) {
      const next = turn.lane.waiting[turn.at];
      if (next?.identity === undefined || !this.identities.has(next.identity)) return next;
      turn.twins.push(next);
    }
  }

  /**
   * Never rejects: every caller gets its own outcome.
   * @param isRest of a group without the lanes that were to blame
   * @returns whether the first try has succeeded
   */
  private async write(group: readonly Waiting<Item, Outcome>[], isRest = false): Promise<boolean> {
    let outcomes: readonly Outcome[];
    try {
      outcomes = await this.flush(group.map(({ item }) => item));
    } catch (error) {
      const lanes = groupBy(group, ({ lane }) => lane);
      const isLost = !isRolledBack(error) && !(lanes.size > 1 && isLockTimeout(error));
      if (isLost || group.length === 1) {
        this.settle(group, ({ reject }) => reject(error));
      } else if (lanes.size > 1) {
        const blamed = isRest ? [] : this.lanesToBlame(error, group);
        // Not awaited: other flushes need not wait for these.
        for (const lane of blamed) void this.writeApart(lane, lanes.get(lane) ?? [], true);
        const rest = group.filter(({ lane }) => !blamed.includes(lane));
        if (blamed.length > 0) return await (rest.length > 0 && this.write(rest, true));
        for (const [lane, its] of lanes) void this.writeApart(lane, its, false);
      } else {
        const half = Math.ceil(group.length / 2);
        await this.write(group.slice(0, half));
        await this.write(group.slice(half));
      }
      return false;
    }
    this.settle(group, ({ resolve, reject }, i) => {
      if (i < outcomes.length) resolve(outcomes[i] as Outcome);
      else reject(new Error('The flush has returned no outcome for this item'));
    });
    return true;
  }

  /**
   * What a lane had in a flush that was rolled back. Until it is written, the lane shares no other one.
   * @param isToBlame whether it then shares none for a while, however it is written now
   */
  private async writeApart(
    name: string,
    group: readonly Waiting<Item, Outcome>[],
    isToBlame: boolean,
  ): Promise<void> {
    const since = performance.now();
    this.apart.set(name, true);
    this.setShares(name, false);
    const isWell = await this.write(group);
    if (isWell && !isToBlame && performance.now() - since < SLOW_MS) {
      this.apart.delete(name);
      this.setShares(name, true);
    }
    this.goOn();
  }

  /** The lanes of the tenant whose statement has failed. */
  private lanesToBlame(error: unknown, group: readonly Waiting<Item, Outcome>[]): string[] {
    const tenantId = failedTenantOf(error);
    if (tenantId === undefined) return [];
    const its = group.filter(({ item }) => this.limits.tenantOf(item) === tenantId);
    return [...new Set(its.map(({ lane }) => lane))];
  }

  private setShares(name: string, shares: boolean): void {
    const lane = this.lanes.get(name);
    if (lane) lane.shares = shares;
  }

  private settle(
    group: readonly Waiting<Item, Outcome>[],
    tell: (waiting: Waiting<Item, Outcome>, i: number) => void,
  ): void {
    for (const { identity } of group) if (identity !== undefined) this.identities.delete(identity);
    group.forEach(tell);
  }
}

/** Items by a key, in their order. */
export function groupBy<Item>(items: readonly Item[], keyOf: (item: Item) => string): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const others = groups.get(key);
    if (others) others.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

/** Items by their tenant. Sorted, so that two transactions for the same tenants lock rows in the same order. */
export const byTenant = <Item>(
  items: readonly Item[],
  tenantOf: (item: Item) => string,
): [tenantId: string, items: Item[]][] =>
  [...groupBy(items, tenantOf)].toSorted(([one], [other]) => (one < other ? -1 : 1));
