import { isRolledBack } from './transient.js';

/** How much one flush takes. */
interface GroupLimits<Item> {
  /** Maximum number of items of one flush. */
  maxItems: number;
  /** Maximum weight of one flush. An item that is heavier than that goes alone. */
  maxWeight?: number;
  /** The weight of an item, for instance its bytes. Unset: nothing weighs anything. */
  weigh?: (item: Item) => number;
  /** Maximum number of flushes of one lane that are under way at the same time. */
  maxFlushes?: number;
  /** Two items with the same identity are never written at the same time: the later one waits for the end of the flush. */
  identify?: (item: Item) => string | undefined;
}

interface Waiting<Item, Outcome> {
  item: Item;
  weight: number;
  identity: string | undefined;
  resolve: (outcome: Outcome) => void;
  reject: (reason: unknown) => void;
}

/** Items that may go together. */
interface Lane<Item, Outcome> {
  waiting: Waiting<Item, Outcome>[];
  flushes: number;
  /** Of the items that are being flushed. */
  identities: Set<string>;
  isScheduled: boolean;
}

/** Two, so that a slow flush holds nobody who comes after it. */
export const MAX_FLUSHES = 2;
const MAX_WEIGHT = 1024 * 1024;

/**
 * Group commit: writes of many callers become one statement in one transaction. What comes while a flush is under way waits
 * and goes with the next one. There is no timer. At light load a group has one item, and it is flushed at once. When the last
 * group had several, a lane waits for the end of this turn of the event loop: requests that have arrived together go together.
 *
 * A lane is what may share a flush: everything of a group has the same scope of row-level security, and whatever else the
 * statement has only once. `flush` writes a whole group in **one transaction** and returns the outcome of each item, in the
 * order of the items. It judges each item on its own; a refusal of one is an outcome like any other, and not an error. It
 * does not reject once the transaction is committed.
 *
 * If `flush` rejects and the transaction is certainly rolled back, the halves of the group are flushed one after the other,
 * and so on: in the end only the item that is to blame rejects. If nobody knows whether it was committed (the connection was
 * lost), or Postgres was too slow, all items of the group reject with that error.
 */
export class GroupCommit<Item, Outcome> {
  private readonly lanes = new Map<string, Lane<Item, Outcome>>();
  private readonly limits: Required<GroupLimits<Item>>;
  /** Number of items of the last group, of any lane. */
  private lately = 1;

  constructor(
    private readonly flush: (lane: string, items: readonly Item[]) => Promise<readonly Outcome[]>,
    limits: GroupLimits<Item>,
  ) {
    this.limits = {
      maxWeight: MAX_WEIGHT,
      weigh: () => 0,
      maxFlushes: MAX_FLUSHES,
      identify: () => undefined,
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
    const found = this.lanes.get(lane) ?? {
      ...{ waiting: [], flushes: 0, identities: new Set(), isScheduled: false },
    };
    this.lanes.set(lane, found);
    return new Promise((resolve, reject) => {
      found.waiting.push({ item, weight, identity, resolve, reject });
      this.schedule(lane, found);
    });
  }

  private schedule(name: string, lane: Lane<Item, Outcome>): void {
    if (lane.isScheduled || lane.waiting.length === 0 || lane.flushes >= this.limits.maxFlushes) return;
    lane.isScheduled = true;
    const flush = (): void => {
      lane.isScheduled = false;
      void this.flushNext(name, lane);
    };
    if (this.lately > 1 || lane.flushes > 0) setImmediate(flush);
    else process.nextTick(flush);
  }

  private async flushNext(name: string, lane: Lane<Item, Outcome>): Promise<void> {
    const group = this.takeGroup(lane);
    // Everybody waits for a twin: the end of its flush comes here again.
    if (group.length === 0) return;
    this.lately = group.length;
    lane.flushes += 1;
    // There may be more than one group holds.
    this.schedule(name, lane);
    await this.write(name, group);
    lane.flushes -= 1;
    for (const { identity } of group) if (identity !== undefined) lane.identities.delete(identity);
    if (lane.waiting.length === 0 && lane.flushes === 0) this.lanes.delete(name);
    else this.schedule(name, lane);
  }

  /** The oldest items that may go together. None: all of them wait for the end of a flush. */
  private takeGroup(lane: Lane<Item, Outcome>): Waiting<Item, Outcome>[] {
    const { maxItems, maxWeight } = this.limits;
    const group: Waiting<Item, Outcome>[] = [];
    const later: Waiting<Item, Outcome>[] = [];
    const { identities } = lane;
    let total = 0;
    for (const [i, next] of lane.waiting.entries()) {
      const { weight, identity } = next;
      if (group.length === maxItems || (group.length > 0 && total + weight > maxWeight)) {
        later.push(...lane.waiting.slice(i));
        break;
      }
      if (identity !== undefined && identities.has(identity)) {
        later.push(next);
        continue;
      }
      if (identity !== undefined) identities.add(identity);
      total += weight;
      group.push(next);
    }
    lane.waiting = later;
    return group;
  }

  /** Never rejects: every caller is told. */
  private async write(lane: string, group: readonly Waiting<Item, Outcome>[]): Promise<void> {
    let outcomes: readonly Outcome[];
    try {
      const items = group.map(({ item }) => item);
      outcomes = await this.flush(lane, items);
    } catch (error) {
      if (group.length === 1 || !isRolledBack(error)) {
        for (const { reject } of group) reject(error);
        return;
      }
      const half = Math.ceil(group.length / 2);
      await this.write(lane, group.slice(0, half));
      return this.write(lane, group.slice(half));
    }
    group.forEach(({ resolve, reject }, i) => {
      if (i < outcomes.length) resolve(outcomes[i] as Outcome);
      else reject(new Error('The flush has returned no outcome for this item'));
    });
  }
}
