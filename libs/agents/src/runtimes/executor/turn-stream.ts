import { StreamResponse } from '@baton/a2a';
import type { AgentOutput } from '../../runtime.js';
import { type ErrorDetail, type FromAgent, type ToAgent, WINDOW } from './protocol.js';
import { AgentError } from './run-failure.js';

const MAX_LINES = 20;
const MAX_LINE = 1_000;
/** Credit is given in such portions. */
const CREDIT = WINDOW / 4;

type Batch = Extract<FromAgent, { type: 'events' }>;

/** The worker's end of one turn in the process of an agent. */
export class TurnStream {
  private batches: Batch[] = [];
  private isFinished = false;
  private failure: Error | undefined;
  private owed = 0;
  private readonly lines: string[] = [];
  private wake: () => void = () => undefined;
  /** `execute` has returned, or its process has gone. */
  hasReturned = false;

  constructor(
    readonly turn: number,
    private readonly send: (message: ToAgent) => void,
  ) {}

  /** The events in order, until no more follow or the stream is closed. */
  async *outputs(): AsyncGenerator<AgentOutput> {
    for (;;) {
      const batch = this.batches.shift();
      if (batch) {
        for (const event of batch.events) yield outputOf(event);
        this.credit(batch.size);
      } else if (this.isFinished) return;
      else await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }

  /** Nobody waits for events of this turn. */
  get isOver(): boolean {
    return this.isFinished;
  }

  /** It is known why the turn fails. */
  get hasFailed(): boolean {
    return this.failure !== undefined;
  }

  /** Throws what the turn has failed with, once there are no more outputs. */
  throwIfFailed(): void {
    if (this.failure) throw this.failure;
  }

  /** Have `cancelTask` called. */
  cancel(): void {
    this.send({ type: 'cancel', turn: this.turn });
  }

  /** Nobody reads any more. */
  close(): void {
    if (!this.hasReturned) this.send({ type: 'close', turn: this.turn });
    this.batches = [];
    this.end();
  }

  events(batch: Batch): void {
    if (this.isFinished) return;
    this.batches.push(batch);
    this.wake();
  }

  /** No event follows. */
  end(): void {
    this.isFinished = true;
    this.wake();
  }

  /** `execute` has returned; with an error it has thrown. */
  returned(error?: ErrorDetail): void {
    this.hasReturned = true;
    if (error) this.fail(new AgentError({ ...error, output: this.output }));
    this.end();
  }

  /** The turn fails, whatever `execute` still does. */
  fail(failure: Error): void {
    this.failure ??= failure;
    this.end();
  }

  /** Keep a line of the console: the last ones stand in the error. */
  line(text: string): void {
    this.lines.push(text.slice(0, MAX_LINE));
    if (this.lines.length > MAX_LINES) this.lines.shift();
  }

  /** The last lines of the turn's console. */
  get output(): string[] {
    return [...this.lines];
  }

  private credit(size: number): void {
    this.owed += size;
    if (this.owed < CREDIT || this.hasReturned) return;
    this.send({ type: 'credit', turn: this.turn, size: this.owed });
    this.owed = 0;
  }
}

/** Fields that a JavaScript author left out are filled in. */
function outputOf(event: unknown): AgentOutput {
  const { payload } = StreamResponse.fromJSON(event);
  if (!payload) throw new TypeError('publish() was given an event that says nothing');
  return payload;
}
