import type { TaskEvent } from '@baton/a2a';
import type { TaskStore } from '@baton/database';

/** Page size of the log. Events may be large, and there may be many readers. */
const PAGE = { limit: 500, bytes: 256 * 1024 };

/** Which task a watch follows. */
export interface LogKey {
  tenantId: string;
  taskId: string;
}

export interface LogPage {
  events: TaskEvent[];
  /** Whether there may be events after them. */
  more: boolean;
}

/** One read of a page, for all readers that want it. */
interface PageRead {
  key: LogKey;
  after: number;
  readers: Set<Reader>;
}

/** A reader that waits for a page. */
interface Reader {
  resolve(page: LogPage): void;
  reject(error: unknown): void;
}

const NOTHING: LogPage = { events: [], more: false };

/**
 * Reads pages of logs for all watches of this process. After an outage thousands want to read at once. So only a few
 * reads run at a time, and other work finds connections. Tenants take turns. Watches that wait for the same page share
 * one read.
 */
export class LogReader {
  /** Reads that have not begun, by tenant and page. The tenant whose turn is next comes first. */
  private readonly waiting = new Map<string, Map<string, PageRead>>();
  private running = 0;

  /** @param maxReads how many reads may run at a time */
  constructor(
    private readonly store: Pick<TaskStore, 'readPage'>,
    private readonly maxReads: number,
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
        resolve(NOTHING);
      };
      signal.addEventListener('abort', leave, { once: true });
    });
    this.startReads();
    return page.finally(() => signal.removeEventListener('abort', leave));
  }

  /** Joins a read only if it has not begun: a running read may be older than the signal of the reader. */
  private enqueue(key: LogKey, after: number): PageRead {
    const pages = this.waiting.get(key.tenantId) ?? new Map<string, PageRead>();
    this.waiting.set(key.tenantId, pages);
    const page = `${key.taskId} ${after.toString()}`;
    const read = pages.get(page) ?? { key, after, readers: new Set() };
    pages.set(page, read);
    return read;
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

  /** The oldest read of the next tenant. The tenant then moves to the end of the line. */
  private takeNext(): PageRead | undefined {
    for (const [tenantId, pages] of this.waiting) {
      this.waiting.delete(tenantId);
      for (const [page, read] of pages) {
        pages.delete(page);
        if (read.readers.size === 0) continue;
        if (pages.size > 0) this.waiting.set(tenantId, pages);
        return read;
      }
    }
    return undefined;
  }

  private async perform({ key, after, readers }: PageRead): Promise<void> {
    try {
      const page = await this.store.readPage(key, after, PAGE);
      for (const reader of readers) reader.resolve(page);
    } catch (error) {
      for (const reader of readers) reader.reject(error);
    }
  }
}
