/** Time that a canceled turn waits for the id of the remote task. Without the id the task cannot be canceled. */
const ID_MS = 1_500;

/** Aborts the calls of a turn when the run is stopped or the turn takes too long. */
export class TurnStop {
  /** Whether the turn took longer than its settings allow. */
  timedOut = false;
  private readonly controller = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private idTimer: NodeJS.Timeout | undefined;
  private mayAbort = false;

  constructor(
    private readonly run: AbortSignal,
    timeoutMs: number,
  ) {
    this.timer = setTimeout(() => {
      this.timedOut = true;
      this.controller.abort();
    }, timeoutMs).unref();
    if (run.aborted) this.controller.abort();
    else run.addEventListener('abort', this.onAbort, { once: true });
  }

  /** The signal for all calls. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Whether the run was stopped. Its output is dropped from then on. */
  get isRequested(): boolean {
    return this.run.aborted;
  }

  /** The id of the remote task is known: a cancel may abort the calls at once from now on. */
  allowAbort(): void {
    this.mayAbort = true;
    if (this.run.aborted) this.controller.abort();
  }

  /** Ends all calls and timers. */
  clear(): void {
    clearTimeout(this.timer);
    clearTimeout(this.idTimer);
    this.run.removeEventListener('abort', this.onAbort);
    this.controller.abort();
  }

  private readonly onAbort = (): void => {
    if (this.mayAbort || this.run.reason !== 'canceled') this.controller.abort();
    else this.idTimer = setTimeout(() => this.controller.abort(), ID_MS);
  };
}
