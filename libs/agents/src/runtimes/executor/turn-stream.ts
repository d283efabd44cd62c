import { StreamResponse } from '@baton/a2a';
import { messageOf } from '@baton/telemetry';
import type { AgentOutput, TurnConsole } from '../../agent-runtime.js';
import type { ConsoleLevel } from '../../console-level.js';
import { type AgentErrorDetail, type FromAgent, type SecretReply, type ToAgent, WINDOW } from './protocol.js';
import { AgentError } from './agent-error.js';
import type { ModelPiece } from './model-protocol.js';
import { type Parked, STEP_LIMITS, type StepMessage, type StepReply } from './step-protocol.js';

/** The last lines of the console explain a crash. */
const MAX_LINES = 20;
/** Characters of a line that an error quotes of the agent's console. */
const MAX_LINE = 1_000;
/** Credit is returned in portions of this size. */
const CREDIT = WINDOW / 4;

type EventBatch = Extract<FromAgent, { type: 'events' }>;
/** A message with events. `length`: of its JSON, in characters. */
type ReceivedEvents = EventBatch & { length: number };

/** Messages of an agent's process for a turn, in order. */
type SentOutput =
  | { output: AgentOutput; isReplayed: boolean }
  | { step: StepMessage }
  | { said: AgentOutput };

/** Messages about steps that may wait for the worker. A process sends the next one of a step after the answer. */
const MAX_STEPS_WAITING = STEP_LIMITS.steps * 2;

/** Reads of secrets of a turn at a time. Each is a read from Postgres. */
const MAX_SECRETS_ASKED = 100;

/** The functions of the worker that a turn in an agent's process may call. */
export interface TurnPorts {
  console: TurnConsole;
  /** A secret of the tenant. Rejects with an Error that the author of the agent may read. */
  secret(name: string): Promise<string>;
}

/** The worker's side of one turn in an agent's process. */
export class TurnStream {
  private batches: (ReceivedEvents | { step: StepMessage } | { said: AgentOutput })[] = [];
  private stepsWaiting = 0;
  private secretsAsked = 0;
  /** Set if the code was left because all its steps wait. */
  parked: Parked | undefined;
  /** Set if the code was left because it does not fit the steps of earlier attempts: how. */
  mismatch: string | undefined;
  private isFinished = false;
  private failure: Error | undefined;
  private owed = 0;
  /** Messages with events that were not read, or came after the end of the turn, in characters. */
  unread = 0;
  private readonly lines: string[] = [];
  private wake: () => void = () => undefined;
  /** `execute` has returned. */
  hasReturned = false;

  constructor(
    readonly turn: number,
    private readonly send: (message: ToAgent) => void,
    private readonly ports: TurnPorts,
  ) {}

  /** Yields events and messages about steps in order until the turn has no more, or until `close`. */
  async *sent(): AsyncGenerator<SentOutput> {
    for (;;) {
      const batch = this.batches.shift();
      if (batch && 'step' in batch) {
        this.stepsWaiting -= 1;
        yield batch;
      } else if (batch && 'said' in batch) yield batch;
      else if (batch) {
        this.unread -= batch.length;
        for (const event of batch.events) yield { output: outputOf(event), isReplayed: isReplayed(event) };
        this.credit(batch.size);
      } else if (this.isFinished) return;
      else await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }

  /** The turn has no further events, or its reader has closed the stream. */
  get isOver(): boolean {
    return this.isFinished;
  }

  get hasFailed(): boolean {
    return this.failure !== undefined;
  }

  /** Throws the error of the turn, if any. Call it after the last output. */
  throwIfFailed(): void {
    if (this.failure) throw this.failure;
  }

  /** Asks the process to call `cancelTask`. */
  cancel(): void {
    this.send({ type: 'cancel', turn: this.turn });
  }

  /** Drops all further events. */
  close(): void {
    if (!this.hasReturned) this.send({ type: 'close', turn: this.turn });
    this.batches = [];
    this.end();
  }

  /** @param length of the JSON of the message, in characters */
  events(batch: EventBatch, length: number): void {
    this.unread += length;
    if (this.isFinished) return;
    this.batches.push({ ...batch, length });
    this.wake();
  }

  /** A message about a step. A process that does not wait for answers fails its turn. */
  step(step: StepMessage): void {
    if (this.isFinished) return;
    this.stepsWaiting += 1;
    const isModelCall = step.op === 'begin' && step.kind === 'model';
    const maxBytes = isModelCall ? STEP_LIMITS.modelRequestBytes : STEP_LIMITS.resultBytes;
    if (this.stepsWaiting > MAX_STEPS_WAITING || largestText(step) > maxBytes) {
      this.batches = [];
      const message = `the steps of a turn are more than ${MAX_STEPS_WAITING} at a time, or one is larger than ${maxBytes} bytes`;
      this.fail(new AgentError({ name: 'RangeError', message }));
      return;
    }
    this.batches.push({ step });
    this.wake();
  }

  /** The code asks for a secret. Never throws. */
  secret({ id, name }: { id: number; name: string }): void {
    const answer = (reply: SecretReply): void => {
      if (!this.hasReturned) this.send({ type: 'secret-reply', turn: this.turn, id, reply });
    };
    if (this.secretsAsked >= MAX_SECRETS_ASKED) {
      answer({ refusal: `a turn reads at most ${MAX_SECRETS_ASKED} secrets at a time` });
      return;
    }
    this.secretsAsked += 1;
    this.ports
      .secret(name)
      .then(
        (value) => answer({ value }),
        (error: unknown) => answer({ refusal: messageOf(error) }),
      )
      .finally(() => (this.secretsAsked -= 1));
  }

  /** Output of the worker itself, among that of the process. */
  say(output: AgentOutput): void {
    if (this.isFinished) return;
    this.batches.push({ said: output });
    this.wake();
  }

  reply(id: number, reply: StepReply): void {
    this.send({ type: 'step-reply', turn: this.turn, id, reply });
  }

  /** The turn fails if the reply cannot be made. */
  replyLater(id: number, later: Promise<StepReply>): void {
    later.then(
      (reply) => !this.hasReturned && this.reply(id, reply),
      (error: unknown) => this.fail(error instanceof Error ? error : new Error(messageOf(error))),
    );
  }

  piece(id: number, piece: ModelPiece): void {
    if (!this.hasReturned) this.send({ type: 'model-piece', turn: this.turn, id, piece });
  }

  /** The turn has no further events. */
  end(): void {
    this.isFinished = true;
    this.wake();
  }

  /** `execute` returned, threw `error`, or was left because all its steps wait, or because of a mismatch. */
  returned(error?: AgentErrorDetail, parked?: Parked, mismatch?: string): void {
    this.hasReturned = true;
    this.parked = parked;
    this.mismatch = mismatch;
    if (error && mismatch === undefined) this.fail(new AgentError({ ...error, output: this.output }));
    this.end();
  }

  /** Fails the turn, even if `execute` still runs. */
  fail(failure: Error): void {
    this.failure ??= failure;
    this.end();
  }

  /**
   * Keeps a console line. An error of the turn includes the last ones.
   * @returns the line without secrets
   */
  line(level: ConsoleLevel, text: string): string {
    const clean = this.ports.console.write(level, text);
    this.lines.push(clean.slice(0, MAX_LINE));
    if (this.lines.length > MAX_LINES) this.lines.shift();
    return clean;
  }

  /** The last console lines of the turn. */
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

/** Fills in fields that the executor left out. */
function outputOf(event: unknown): AgentOutput {
  const { payload } = StreamResponse.fromJSON(event);
  if (!payload) throw new TypeError('publish() got an event without content');
  return payload;
}

const isReplayed = (event: unknown): boolean => (event as { replayed?: unknown } | null)?.replayed === true;

/** The length of the longest text of a message about a step: a process may send anything. */
const largestText = (step: StepMessage): number =>
  Math.max(0, ...Object.values(step).map((value: unknown) => (typeof value === 'string' ? value.length : 0)));
