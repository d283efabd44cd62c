import type { ConsoleLevel } from '@baton/agents';
import { type ConsoleLine, ConsoleLineStore, isTransient, type RunKey } from '@baton/database';
import { clock, Logger } from '@baton/telemetry';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';

/** How long a line waits for others at most, while Postgres answers. */
const WRITE_AFTER_MS = 500;
/** Maximum waiting lines of a run: those that a task keeps, and one more, for which the store writes its note. */
const MAX_LINES = 1_001;
/** A little more than a task keeps. */
const MAX_BYTES = 300 * 1024;
/** Maximum bytes of waiting lines of all runs of this worker. */
const MAX_ALL_BYTES = 16 * 1024 * 1024;

/** The lines of an attempt that are not stored yet. */
interface RunConsole {
  run: RunKey;
  lines: ConsoleLine[];
  bytes: number;
  /** Lines for which this worker had no room. */
  dropped: number;
  /** The task takes no more. */
  isFull: boolean;
}

/**
 * What agents in code write to their consoles, by task. Lines are stored in batches, one batch after the other, so a worker whose
 * agents write a lot makes larger batches, not more of them. Lines are stored as well as possible: those that wait are lost with
 * their worker, and a batch is there twice if Postgres has stored it and its answer is lost.
 */
@Injectable()
export class TaskConsoles implements OnApplicationShutdown {
  private readonly waiting = new Set<RunConsole>();
  private bytes = 0;
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> = Promise.resolve();
  private isWriting = false;

  constructor(
    private readonly store: ConsoleLineStore,
    private readonly logger: Logger,
  ) {}

  /** Takes the lines of an attempt. They may not have secrets. */
  forRun({ tenantId, taskId, runId, attempt }: RunKey): (level: ConsoleLevel, text: string) => void {
    const run = { tenantId, taskId, runId, attempt };
    const console: RunConsole = { run, lines: [], bytes: 0, dropped: 0, isFull: false };
    return (level, text) => this.add(console, { at: clock.date(), level, text });
  }

  /** Stores the waiting lines. No runtime writes any more. */
  async onApplicationShutdown(): Promise<void> {
    await this.writing;
    clearTimeout(this.timer);
    await this.writeAll();
    clearTimeout(this.timer);
  }

  private add(console: RunConsole, line: ConsoleLine): void {
    if (console.isFull || console.lines.length >= MAX_LINES || console.bytes > MAX_BYTES) return;
    if (this.bytes > MAX_ALL_BYTES) {
      console.dropped += 1;
      return;
    }
    if (console.dropped > 0) this.push(console, noteOf(console.dropped, line.at));
    console.dropped = 0;
    this.push(console, line);
    this.waiting.add(console);
    this.writeSoon();
  }

  private push(console: RunConsole, line: ConsoleLine): void {
    console.lines.push(line);
    const bytes = Buffer.byteLength(line.text);
    console.bytes += bytes;
    this.bytes += bytes;
  }

  private writeSoon(): void {
    if (this.isWriting) return;
    this.timer ??= setTimeout(() => {
      this.writing = this.writeAll();
    }, WRITE_AFTER_MS).unref();
  }

  /** Never rejects. */
  private async writeAll(): Promise<void> {
    this.timer = undefined;
    this.isWriting = true;
    // Lines that come meanwhile wait for the next time.
    const consoles = [...this.waiting];
    for (const console of consoles) if (!(await this.write(console))) break;
    this.isWriting = false;
    if (this.waiting.size > 0) this.writeSoon();
  }

  /** @returns whether Postgres has answered; the lines continue waiting if not */
  private async write(console: RunConsole): Promise<boolean> {
    const { run, lines, bytes } = console;
    // Lines that come from now on are another batch.
    console.lines = [];
    console.bytes = 0;
    this.waiting.delete(console);
    try {
      console.isFull = await this.store.append(run, lines);
    } catch (error) {
      if (isTransient(error)) {
        console.lines = [...lines, ...console.lines];
        console.bytes += bytes;
        this.waiting.add(console);
        return false;
      }
      const { tenantId, taskId, runId } = run;
      this.logger.warn('console lines could not be stored', { err: error, tenantId, taskId, runId });
    }
    this.bytes -= bytes;
    return true;
  }
}

const noteOf = (dropped: number, at: Date): ConsoleLine => ({
  at,
  level: 'warn',
  text: `(${dropped} more lines were dropped: the worker had no room for them)`,
});
