import type { TaskEvent } from '@baton/a2a';
import type { TaskStore } from '@baton/database';
import { type LogKey } from './log-key.js';
import { PageMemory } from './page-memory.js';

/** Page size of the log. Events may be large, and there may be many readers. */
const PAGE = { limit: 500, bytes: 256 * 1024 };
/** Pages of up to this many characters need no room in `PageMemory`: a waiting stream takes about as much without a page. */
const SMALL_PAGE = 16 * 1024;

export interface LogPage {
  events: TaskEvent[];
  /** Whether there may be events after them. */
  more: boolean;
  /** To be called when the reader has taken the events, or takes them no longer. Set if they take memory. */
  release?: () => void;
}

/** One read of a page, for all readers of the page. */
interface PageRead {
  key: LogKey;
  after: number;
  readers: Set<Reader>;
  /** Characters of memory that were granted for this page. */
  granted: number;
  /** Ends its wait for memory. */
  stopWaiting?: () => void;
}

/** A reader that waits for a page. */
interface Reader {
  resolve(page: LogPage): void;
  reject(error: unknown): void;
}

const NOTHING: LogPage = { events: [], more: false };

/**
 * Reads pages of logs for all watches of this process. After an outage thousands read at once. So only a few
 * reads run at a time, and other work finds connections. Tenants take turns. Watches that wait for the same page share
 * one read, and its memory.
 *
 * How large a page is shows when it is read. If there is no room for it, it is dropped, and read again when there is.
 */
export class LogReader {
  /** Reads that have not begun, by holder and page. The holder whose turn is next comes first. */
  private readonly waiting = new Map<string, Map<string, PageRead>>();
  private running = 0;
  /** Number of reads that were made again. */
  private repeats = 0;

  /** @param maxReads how many reads may run at a time */
  constructor(
    private readonly store: Pick<TaskStore, 'readPage'>,
    private readonly maxReads: number,
    private readonly memory: PageMemory,
  ) {}

  /**
   * The events after `after`, as they are in the log after this call. Rejects as the store does. Resolves with nothing
   * when `signal` aborts.
   */
  read(key: LogKey, after: number, signal: AbortSignal): Promise<LogPage> {
    if (signal.aborted) return Promise.resolve(NOTHING);
    const read = this.enqueue(key, after);
    let leave: () => void;
    const page = new Promise<LogPage>((resolve, reject) => {
      const reader = { resolve, reject };
      read.readers.add(reader);
      leave = () => {
        read.readers.delete(reader);
        if (read.readers.size === 0) this.abandon(read);
        resolve(NOTHING);
      };
      signal.addEventListener('abort', leave, { once: true });
    });
    this.startReads();
    return page.finally(() => signal.removeEventListener('abort', leave));
  }

  /** Joins a read only if it has not begun: a running read may be older than the signal of the reader. */
  private enqueue(key: LogKey, after: number): PageRead {
    const pages = this.waitingOf(key);
    const page = nameOf(key, after);
    const read = pages.get(page) ?? { key, after, readers: new Set(), granted: 0 };
    pages.set(page, read);
    return read;
  }

  private waitingOf(key: LogKey): Map<string, PageRead> {
    const holder = key.holder;
    const pages = this.waiting.get(holder) ?? new Map<string, PageRead>();
    this.waiting.set(holder, pages);
    return pages;
  }

  private startReads(): void {
    while (this.running < this.maxReads) {
      const read = this.takeNext();
      if (!read) return;
      this.running += 1;
      void this.perform(read).finally(() => {
        this.running -= 1;
        this.startReads();
      });
    }
  }

  /** The oldest read of the next holder. The holder then moves to the end of the line. */
  private takeNext(): PageRead | undefined {
    for (const [holder, pages] of this.waiting) {
      this.waiting.delete(holder);
      for (const [page, read] of pages) {
        pages.delete(page);
        if (read.readers.size === 0) continue;
        if (pages.size > 0) this.waiting.set(holder, pages);
        return read;
      }
    }
    return undefined;
  }

  private async perform(read: PageRead): Promise<void> {
    const { key, after, readers } = read;
    try {
      const page = await this.store.readPage(key, after, PAGE);
      const size = page.events.reduce((sum, { json }) => sum + json.length, 0);
      if (readers.size > 0 && this.hasRoom(read, size)) this.answer(read, page);
      else if (readers.size > 0) this.waitForRoom(read, size);
      else this.abandon(read);
    } catch (error) {
      this.abandon(read);
      for (const reader of readers) reader.reject(error);
    }
  }

  /** Whether the page may be kept. It then has the memory. */
  private hasRoom(read: PageRead, size: number): boolean {
    const holder = read.key.holder;
    if (read.granted === 0) {
      if (size <= SMALL_PAGE) return true;
      if (!this.memory.take(holder, size)) return false;
    } else if (size > read.granted) {
      // The log has grown meanwhile. Those who wait for memory wait for no more than is granted.
      this.memory.hold(holder, size - read.granted);
    }
    read.granted = Math.max(read.granted, size);
    return true;
  }

  private waitForRoom(read: PageRead, size: number): void {
    read.stopWaiting = this.memory.wait(read.key.holder, size, () => {
      read.granted = size;
      // Its name is taken if another reader has asked for the page since.
      this.waitingOf(read.key).set(`${nameOf(read.key, read.after)} again ${String(++this.repeats)}`, read);
      this.startReads();
    });
  }

  /** Gives the page to its readers. Its memory is free again when all have released it. */
  private answer(read: PageRead, page: Omit<LogPage, 'release'>): void {
    const { readers, granted } = read;
    if (granted === 0) {
      for (const reader of readers) reader.resolve(page);
      return;
    }
    const holding = new Set(readers);
    for (const reader of holding) {
      const release = (): void => {
        if (holding.delete(reader) && holding.size === 0) this.memory.give(read.key.holder, granted);
      };
      reader.resolve({ ...page, release });
    }
    readers.clear();
    read.granted = 0;
  }

  /** All readers of the page have left. */
  private abandon(read: PageRead): void {
    read.stopWaiting?.();
    if (read.granted > 0) this.memory.give(read.key.holder, read.granted);
    read.granted = 0;
  }
}

const nameOf = ({ taskId }: LogKey, after: number): string => `${taskId} ${after.toString()}`;
