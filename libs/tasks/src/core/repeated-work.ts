import type { FailureLog } from '@baton/telemetry';

/** Longest pause, as a multiple of the one asked for. */
export const MAX_PAUSE = 1.25;

/** How a piece of work is repeated. */
export interface Repetition {
  /** Pause between the end of one time and the next, in ms; spread by a quarter, so that workers do not keep step. */
  everyMs: number;
  work: () => Promise<void>;
  /** Told how each time went; a failed one is followed by the next all the same. */
  log?: FailureLog;
}

/** Work that is done again and again, never twice at once, until it is stopped. It does not keep the process alive. */
export class RepeatedWork {
  private timer: NodeJS.Timeout | undefined;
  private readonly stopping = new AbortController();
  private running: Promise<void> = Promise.resolve();

  constructor(private readonly repetition: Repetition) {}

  /** Aborted by `stop`, for pauses within the work. */
  get signal(): AbortSignal {
    return this.stopping.signal;
  }

  /** The first time comes after a pause. */
  start(): void {
    const wait = this.repetition.everyMs * (MAX_PAUSE - Math.random() / 2);
    this.timer = setTimeout(() => {
      this.running = this.once();
    }, wait).unref();
  }

  /** Resolves when what is under way has ended. */
  async stop(): Promise<void> {
    this.stopping.abort();
    clearTimeout(this.timer);
    await this.running;
  }

  private async once(): Promise<void> {
    try {
      await this.repetition.work();
      this.repetition.log?.worked();
    } catch (error) {
      if (!this.signal.aborted) this.repetition.log?.failed(error);
    }
    if (!this.signal.aborted) this.start();
  }
}
