import { untilStatementEnded } from '@baton/postgres';
import { FailureLog, type Logger, spreadPause } from '@baton/telemetry';
import type { OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';

/** Longest pause that is made because a run has failed late, in ms. */
const MAX_BACKOFF_MS = 5_000;

/** How a piece of work is repeated. */
export interface Repetition {
  /**
   * Pause between the end of one run and the next, in ms. It varies by a quarter, so that workers do not keep step. Unset:
   * only `wake` starts a run.
   */
  everyMs?: number;
  /** Logs when the work begins to fail and when it works again. `name` begins a sentence. Unset: nothing is logged. */
  log?: { name: string; logger: Pick<Logger, 'warn' | 'info'> };
}

/**
 * A provider of Nest whose work runs again and again, never twice at once, from the start of the application until its
 * shutdown. A run that fails is followed by the next all the same. If it took long to fail, the pause is longer: a slow server is
 * asked less often. The work does not keep the process alive.
 */
export abstract class RepeatedWork implements OnApplicationBootstrap, OnModuleDestroy {
  private readonly everyMs: number | undefined;
  private readonly log: FailureLog | undefined;
  private readonly stopping = new AbortController();
  private timer: NodeJS.Timeout | undefined;
  private running: Promise<void> | undefined;

  protected constructor({ everyMs, log }: Repetition) {
    this.everyMs = everyMs;
    this.log = log && new FailureLog(log.name, log.logger);
  }

  /** One run of the work. */
  abstract runOnce(): Promise<unknown>;

  /** Aborted at the shutdown, for pauses within the work. */
  protected get signal(): AbortSignal {
    return this.stopping.signal;
  }

  /** Starts a run now instead of after the pause. Does nothing during a run. */
  protected wake(): void {
    if (this.signal.aborted || this.running) return;
    clearTimeout(this.timer);
    this.running = this.repeat();
  }

  /** The pause before the next run, in ms; undefined = there is none without `wake`. */
  protected nextPauseMs(): number | undefined {
    return this.everyMs === undefined ? undefined : spreadPause(this.everyMs);
  }

  /** The first run comes after a pause. */
  onApplicationBootstrap(): void {
    this.scheduleNext();
  }

  /** Resolves when the current run has ended. */
  async onModuleDestroy(): Promise<void> {
    this.stopping.abort();
    clearTimeout(this.timer);
    await this.running;
  }

  private scheduleNext(minMs = 0): void {
    const pauseMs = this.nextPauseMs();
    if (pauseMs !== undefined) {
      this.timer = setTimeout(() => this.wake(), Math.max(pauseMs, minMs)).unref();
    }
  }

  private async repeat(): Promise<void> {
    const begun = performance.now();
    let failedAfterMs = 0;
    try {
      await this.runOnce();
      this.log?.worked();
    } catch (error) {
      failedAfterMs = Math.min(performance.now() - begun, MAX_BACKOFF_MS);
      if (!this.signal.aborted) {
        this.log?.failed(error);
        await untilStatementEnded(error);
      }
    }
    this.running = undefined;
    if (!this.signal.aborted) this.scheduleNext(failedAfterMs);
  }
}
