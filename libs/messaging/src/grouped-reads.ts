/** Keys of one read. */
const MAX_KEYS = 500;

interface KeyGroup<V> {
  keys: Set<string>;
  values: Promise<ReadonlyMap<string, V>>;
}

/**
 * One read at a time, of many keys: keys that are asked for while a read is under way go with the next one. There is no timer, so a single
 * key never waits. With hundreds of tenants that each call once a second, a process asks Postgres a few times a second and not hundreds.
 */
export class GroupedReads<V> {
  private underWay: Promise<unknown> = Promise.resolve();
  private next: KeyGroup<V> | undefined;

  /** @param readMany the values of these keys; a key without a value is missing */
  constructor(private readonly readMany: (keys: readonly string[]) => Promise<ReadonlyMap<string, V>>) {}

  /** The value of a key, read after this call; undefined = there is none. Rejects as the read of its group does. */
  async read(key: string): Promise<V | undefined> {
    if (!this.next || this.next.keys.size >= MAX_KEYS) this.next = this.group();
    this.next.keys.add(key);
    return (await this.next.values).get(key);
  }

  private group(): KeyGroup<V> {
    const keys = new Set<string>();
    const values = this.underWay.then(async () => {
      if (this.next?.keys === keys) this.next = undefined;
      return this.readMany([...keys]);
    });
    this.underWay = values.catch(() => undefined);
    return { keys, values };
  }
}
