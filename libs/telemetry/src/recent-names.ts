/** A set of names. Each leaves it some time after it was last added. */
export class RecentNames {
  /** The end of each name in ms of `performance.now()`, the earliest first. */
  private readonly until = new Map<string, number>();

  /** @param recentMs how long a name counts after it was seen, in ms */
  constructor(private readonly recentMs: number) {}

  add(name: string): void {
    this.forgetOld();
    this.until.delete(name);
    this.until.set(name, performance.now() + this.recentMs);
  }

  forget(name: string): void {
    this.until.delete(name);
  }

  has(name: string): boolean {
    return (this.until.get(name) ?? 0) > performance.now();
  }

  get isEmpty(): boolean {
    this.forgetOld();
    return this.until.size === 0;
  }

  private forgetOld(): void {
    for (const [name, until] of this.until) {
      if (until > performance.now()) return;
      this.until.delete(name);
    }
  }
}
