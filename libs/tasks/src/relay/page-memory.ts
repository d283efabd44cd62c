/** A read that waits for memory. */
interface PageWaiter {
  bytes: number;
  /** Called once, when it has the bytes. */
  onGranted: () => void;
}

/** What one holder has, and what it waits for, oldest first. */
interface Share {
  held: number;
  readonly waiting: Set<PageWaiter>;
}

/**
 * Memory of this process for pages of logs that were read and whose readers have not taken them yet, counted as JSON. A reader that takes
 * nothing keeps its page for `SSE_STALL_MS`. A page that does not fit is not read. A holder has at most half of the memory. A holder that
 * has none always gets a page, so every holder continues while others have everything.
 */
export class PageMemory {
  private held = 0;
  /** The holder whose turn is next comes first. */
  private readonly shares = new Map<string, Share>();

  /** @param total in characters */
  constructor(private readonly total: number) {}

  /** @returns whether the holder has the bytes now. False: it must `wait` for them */
  take(holder: string, bytes: number): boolean {
    const share = this.shares.get(holder);
    if (share && (share.waiting.size > 0 || !this.fits(share, bytes))) return false;
    this.hold(holder, bytes);
    return true;
  }

  /** Calls `onGranted` when the holder has the bytes. @returns gives up the wait; does nothing after the grant */
  wait(holder: string, bytes: number, onGranted: () => void): () => void {
    const waiter = { bytes, onGranted };
    this.shareOf(holder).waiting.add(waiter);
    this.serve();
    return () => {
      if (!this.shares.get(holder)?.waiting.delete(waiter)) return;
      this.forget(holder);
      // Later ones may need less.
      this.serve();
    };
  }

  /** Counts bytes of a read that turned out to be larger than what it was granted. */
  hold(holder: string, bytes: number): void {
    this.shareOf(holder).held += bytes;
    this.held += bytes;
  }

  /** The readers have taken this many bytes. */
  give(holder: string, bytes: number): void {
    this.hold(holder, -bytes);
    this.forget(holder);
    this.serve();
  }

  private shareOf(holder: string): Share {
    let share = this.shares.get(holder);
    if (!share) this.shares.set(holder, (share = { held: 0, waiting: new Set() }));
    return share;
  }

  private forget(holder: string): void {
    const share = this.shares.get(holder);
    if (share?.held === 0 && share.waiting.size === 0) this.shares.delete(holder);
  }

  private fits({ held }: Share, bytes: number): boolean {
    return held === 0 || (held + bytes <= this.total / 2 && this.held + bytes <= this.total);
  }

  private serve(): void {
    while (this.serveNext());
  }

  private serveNext(): boolean {
    for (const [holder, share] of this.shares) {
      const [next] = share.waiting;
      if (!next || !this.fits(share, next.bytes)) continue;
      share.waiting.delete(next);
      this.hold(holder, next.bytes);
      this.shares.delete(holder);
      this.shares.set(holder, share);
      next.onGranted();
      return true;
    }
    return false;
  }
}
