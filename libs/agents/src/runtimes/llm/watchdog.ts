import type { LlmConfig } from './config.js';
import { ModelTimeout } from './provider-failure.js';

/** Watches one call of a model: gives it up when it is stopped, or when it takes longer than the agent allows. */
export class Watchdog {
  private readonly controller = new AbortController();
  private readonly gaveUp: Promise<never>;
  private readonly total: NodeJS.Timeout;
  private pause: NodeJS.Timeout | undefined;

  constructor(
    private readonly limits: Pick<LlmConfig, 'timeout' | 'firstToken' | 'stall'>,
    private readonly stop: AbortSignal,
  ) {
    this.gaveUp = new Promise((_, reject) => {
      this.signal.addEventListener('abort', () => reject(this.signal.reason as Error), { once: true });
    });
    this.gaveUp.catch(() => undefined);
    stop.addEventListener('abort', this.stopped, { once: true });
    this.total = this.alarm('timeout');
    if (stop.aborted) this.stopped();
  }

  /** Aborts when the call is given up. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /**
   * The parts of an answer as long as they come in time. Only waiting for the model counts, not how long the reader
   * takes for a part.
   * @param isWord whether a part is something the model says
   * @throws ModelTimeout
   */
  async *over<T>(source: AsyncIterable<T>, isWord: (part: T) => boolean): AsyncGenerator<T> {
    const parts = source[Symbol.asyncIterator]();
    let setting: 'firstToken' | 'stall' = 'firstToken';
    this.pause = this.alarm(setting);
    for (;;) {
      const next = await Promise.race([parts.next(), this.gaveUp]);
      if (next.done) return;
      const { value } = next;
      if (isWord(value)) setting = 'stall';
      if (setting === 'stall') clearTimeout(this.pause);
      yield value;
      if (setting === 'stall') this.pause = this.alarm(setting);
    }
  }

  /** The call is over; a connection that is still open is closed. */
  end(): void {
    clearTimeout(this.total);
    clearTimeout(this.pause);
    this.stop.removeEventListener('abort', this.stopped);
    this.controller.abort(new Error('the call is over'));
  }

  private alarm(setting: ModelTimeout['setting']): NodeJS.Timeout {
    const ms = this.limits[setting];
    return setTimeout(() => this.controller.abort(new ModelTimeout(setting, ms)), ms);
  }

  private readonly stopped = (): void => this.controller.abort(new Error('the turn was stopped'));
}
