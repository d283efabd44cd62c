import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** Tasks that are driven side by side, each with a record of what is seen. */
export class DrivenTasks<T extends { fault?: string }> {
  readonly records: T[] = [];
  private readonly driving = new Set<Promise<void>>();
  private readonly giveUp = new AbortController();

  /** @param drive sends a task, and looks at it until it has ended. It rejects when the signal aborts */
  constructor(private readonly drive: (record: T, signal: AbortSignal) => Promise<void>) {
    setMaxListeners(0, this.giveUp.signal);
  }

  /** Begins so many tasks, spread over the time. */
  async begin(tasks: number, lastsMs: number, recordOf: (number: number) => T): Promise<void> {
    for (let number = 0; number < tasks; number++) {
      const record = recordOf(number);
      this.records.push(record);
      const driving = this.drive(record, this.giveUp.signal)
        .catch((error: unknown) => {
          if (!this.giveUp.signal.aborted)
            record.fault = error instanceof Error ? error.message : String(error);
        })
        .finally(() => this.driving.delete(driving));
      this.driving.add(driving);
      await delay(lastsMs / tasks);
    }
  }

  /** Tasks that have not ended. */
  get open(): number {
    return this.driving.size;
  }

  /** Resolves when each task that has begun has ended. */
  async ended(): Promise<void> {
    await Promise.all(this.driving);
  }

  /** Looks at no task any more. */
  stop(): void {
    this.giveUp.abort();
  }
}
