import type { StreamItem } from '@baton/a2a';

/** A refusal comes within this time; a stream that stays silent longer has been accepted and opens empty. */
const PEEK_MS = 1_000;

/** A stream whose first item has been looked at: an error before it can still be a plain JSON answer. */
export class PeekedItems implements AsyncIterableIterator<StreamItem> {
  private first: Promise<IteratorResult<StreamItem>> | undefined;

  /** @param onFurther told whenever a further item is asked for: the first, which may be large, is with its reader */
  constructor(
    private readonly items: AsyncGenerator<StreamItem>,
    private readonly onFurther: () => void,
  ) {}

  /**
   * Start the stream and wait at most `ms` for its first item, which stays in the stream. Rejects when the
   * stream fails before it. Undefined: nothing yet (a resumed stream may have nothing new), or nothing at all.
   */
  async peek(ms = PEEK_MS): Promise<StreamItem | undefined> {
    this.first = this.items.next();
    if (ms === Infinity) return valueOf(await this.first);
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), ms);
    });
    try {
      return valueOf(await Promise.race([this.first, late]));
    } finally {
      clearTimeout(timer);
    }
  }

  next(): Promise<IteratorResult<StreamItem>> {
    if (!this.first) this.onFurther();
    const next = this.first ?? this.items.next();
    this.first = undefined;
    return next;
  }

  return(): Promise<IteratorResult<StreamItem>> {
    return this.items.return(undefined);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

const valueOf = (result: IteratorResult<StreamItem> | undefined): StreamItem | undefined =>
  result === undefined || result.done === true ? undefined : result.value;
