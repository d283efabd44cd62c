import type { LlmConfig } from './llm-config.js';
import { ModelTimeout } from './model-timeout.js';

/** Aborts a model call when the turn is stopped or the call exceeds a timeout of the agent. */
export class CallTimeouts {
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

  /** Aborts the call. */
  get signal(): AbortSignal {
    return this.controller.signal;
  }

  /**
   * Yields the parts of an answer while they arrive in time. Only the time of the model counts, not the time that the
   * reader takes for a part.
   * @param isWord whether a part is output of the model
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

  /** Ends the call, and closes its connection if it is still open. */
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
