/** How long a turn that was canceled waits for the id of the remote task, which can't be canceled without. */
const LEARN_MS = 1_500;

/** Ends the calls of a turn: when the run is stopped, or when the turn takes too long. */
export class TurnStop {
  /** The turn took longer than its settings allow. */
  timedOut = false;
  private readonly controller = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private learning: NodeJS.Timeout | undefined;
  private tellable = false;

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

  /** For the calls. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /** Whether the run was stopped: nobody hears what is said from now on. */
  get isAsked(): boolean {
    return this.run.aborted;
  }

  /** The remote agent can be told of a cancel from now on. */
  canTell(): void {
    this.tellable = true;
    if (this.run.aborted) this.controller.abort();
  }

  /** The turn is over. */
  clear(): void {
    clearTimeout(this.timer);
    clearTimeout(this.learning);
    this.run.removeEventListener('abort', this.onAbort);
    this.controller.abort();
  }

  private readonly onAbort = (): void => {
    if (this.tellable || this.run.reason !== 'canceled') this.controller.abort();
    else this.learning = setTimeout(() => this.controller.abort(), LEARN_MS);
  };
}
