import { setTimeout as delay } from 'node:timers/promises';

/** What a listener was given, and a way to wait for it. */
export class Inbox<T> {
  readonly items: T[] = [];
  private readonly waiting = new Set<() => void>();

  readonly push = (item: T): void => {
    this.items.push(item);
    for (const check of this.waiting) check();
  };

  /** Resolves with everything received as soon as there are `count` items. */
  async reach(count: number): Promise<T[]> {
    await this.until(() => this.items.length >= count);
    return this.items;
  }

  /** Resolves when the condition holds; it is asked whenever something arrives. */
  until(condition: (items: readonly T[]) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const check = (): void => {
        if (!condition(this.items)) return;
        this.waiting.delete(check);
        resolve();
      };
      this.waiting.add(check);
      check();
    });
  }
}

const TICK_MS = 10;

/**
 * What `work` resolves or rejects with. Rejects if it takes longer, as this process measures it: for as long as a busy machine gives
 * it no CPU, no time passes.
 */
export async function inTime<T>(ms: number, work: Promise<T>): Promise<T> {
  const late = new AbortController();
  const tick = async (): Promise<void> => {
    // A pause that a busy machine makes longer counts as short as it was meant.
    for (let passed = 0; passed < ms; passed += TICK_MS)
      await delay(TICK_MS, undefined, { signal: late.signal });
  };
  const timer = tick().then(async () => {
    // Timers that fire together with this one have their say first.
    await new Promise(setImmediate);
    throw new Error(`Not done within ${ms} ms`);
  });
  timer.catch(() => undefined);
  return Promise.race([work, timer]).finally(() => late.abort());
}
