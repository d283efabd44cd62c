interface Seen {
  holder: string;
  at: number;
}

/** The recent users of a shared resource of this process. A holder without others may use all of it. */
export class RecentHolders {
  private latest: Seen | undefined;
  /** The latest of another holder than `latest`. */
  private other: Seen | undefined;

  /** @param activeMs how long a holder counts as active after its last use, in ms */
  constructor(private readonly activeMs: number) {}

  /** The holder uses the resource now. */
  noteUse(holder: string): void {
    if (this.latest?.holder !== holder) this.other = this.latest;
    this.latest = { holder, at: performance.now() };
  }

  /** Whether any other holder is active. */
  hasOthers(holder: string): boolean {
    const last = this.latest?.holder === holder ? this.other : this.latest;
    return last !== undefined && performance.now() - last.at < this.activeMs;
  }
}
