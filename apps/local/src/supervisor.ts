import { messageOf } from '@baton/telemetry';
import { setTimeout as delay } from 'node:timers/promises';

/** A process of ours that is up. */
export interface RunningProcess {
  /** Resolves when it is gone, with the reason in words. Never rejects. */
  readonly exited: Promise<string>;
  /** Asks it to end; kills it after `timeoutMs`. Resolves when it is gone. */
  stop(timeoutMs: number): Promise<void>;
  kill(): void;
}

/** How to keep one process running. */
export interface Supervised {
  /** As a sentence starts: `Worker 2`. */
  title: string;
  /** Resolves when the process is ready. */
  start(): Promise<RunningProcess>;
  stopTimeoutMs: number;
}

/** The events of the supervisor. */
export interface SupervisorEvents {
  say(line: string): void;
  /** It has failed too often to continue. */
  giveUp(line: string): void;
  /** Pause before the n-th try in a row (n from 1), in milliseconds. */
  backoffMs?: (attempt: number) => number;
}

/** Starts of a process that fail one after the other before Baton ends: a wrong setting fails every time. */
const MAX_FAILURES = 5;
/** A process that ran this long starts a new row of failures. */
const STEADY_MS = 60_000;

const doubling = (attempt: number): number => Math.min(500 * 2 ** (attempt - 1), 8000);

/** Keeps a process running: starts it again when it ends, after a pause that grows, until it fails too often. */
export class Supervisor {
  private running: RunningProcess | undefined;
  /** The start under way, or the last one. */
  private launched: Promise<void> = Promise.resolve();
  private failures = 0;
  private readonly stopped = new AbortController();

  constructor(
    private readonly process: Supervised,
    private readonly events: SupervisorEvents,
  ) {}

  /** Starts it the first time. Rejects if it does not get ready: then it is not tried again. */
  start(): Promise<void> {
    this.launched = this.launch();
    return this.launched;
  }

  /** Ends it, without a restart. */
  async stop(): Promise<void> {
    this.stopped.abort();
    await this.launched.catch(() => undefined); // A starting process must not be left behind.
    await this.running?.stop(this.process.stopTimeoutMs);
  }

  kill(): void {
    this.stopped.abort();
    this.running?.kill();
  }

  private isStopping(): boolean {
    return this.stopped.signal.aborted;
  }

  private async launch(): Promise<void> {
    const running = await this.process.start();
    this.running = running;
    const since = performance.now();
    void running.exited.then((reason) => {
      if (performance.now() - since > STEADY_MS) this.failures = 0;
      return this.restart(`ended (${reason})`);
    });
  }

  private async restart(what: string): Promise<void> {
    const { title } = this.process;
    if (this.isStopping()) return;
    this.failures += 1;
    if (this.failures > MAX_FAILURES) {
      this.events.giveUp(`${title} ${what}, for the ${this.failures}th time in a row.`);
      return;
    }
    const pauseMs = (this.events.backoffMs ?? doubling)(this.failures);
    this.events.say(`${title} ${what}. It is started again in ${pauseMs / 1000} s.`);
    await delay(pauseMs, undefined, { signal: this.stopped.signal }).catch(() => undefined);
    if (this.isStopping()) return;
    try {
      await this.start();
      this.events.say(`${title} is back.`);
    } catch (error) {
      await this.restart(`could not be started (${messageOf(error)})`);
    }
  }
}
