import { setTimeout as delay } from 'node:timers/promises';
import type { OutcomeDecision, Parked, StepFailure, StepMessage, StepReply } from '../step-protocol.js';
import type { Deliveries } from './deliveries.js';
import type { HostedStep } from './recorded-steps.js';
import { StepError } from './step-error.js';
import { rejection } from './within-turn.js';

/** A shorter wait stays in the process: to leave it and come back costs more. */
export const IN_PLACE_MS = 1_000;
/** Time between two polls of the tool servers by a task that asks a person: each poll asks again. An answer polls at once. */
const ASKING_MS = 600_000;

/** What a step waits for. */
interface StepWait {
  /** In ms since 1970. */
  until?: number;
  /** It is about the server of a tool, which works by itself. */
  isOfServer?: true;
  input?: Parked['input'];
  /** For a question: see `RecordedStep`. */
  asked?: number | undefined;
}

/** Dependencies of the steps of a turn. */
export interface StepChannel {
  send(message: StepMessage): void;
  /** Every step under way waits: the turn ends here. */
  park(parked: Parked): void;
  /** The code does not fit what earlier attempts have stored: the turn ends here (`StepLink.mismatch`). */
  leave(): void;
}

/** The worker's reply to a message that it has stored. */
export type Stored = Exclude<StepReply, { error: StepFailure }>;

/** The link of a turn's steps to the worker: what the worker stores of them, and how the turn is left when all of them wait. */
export class StepLink {
  /** Steps that were called and have not settled. */
  pending = 0;
  /** Pending steps that wait for something outside of this process. */
  private readonly parked: StepWait[] = [];
  private isContinuing = false;
  private readonly replies = new Map<number, (reply: StepReply) => void>();
  private readonly stopping = new AbortController();
  private readonly leaving = new AbortController();
  /** Aborts when the turn is stopped. */
  readonly stopSignal = this.stopping.signal;
  /** Aborts when the turn is stopped, or left with steps that run. */
  readonly leaveSignal = this.leaving.signal;
  /** Rejects when the turn is stopped. */
  readonly stopped = rejection(this.stopSignal);
  /** How the code differs from what earlier attempts have stored, once that is known. Its later actions are ignored. */
  mismatch: string | undefined;
  /** True: a step that would do more than is recorded waits, so that nothing happens. */
  isReplay = false;
  /** The code has thrown: its steps go no further. */
  hasFailed = false;

  constructor(
    private readonly channel: StepChannel,
    private readonly deliveries: Deliveries,
  ) {}

  /** Whether every step under way waits. */
  get allWait(): boolean {
    return this.pending === this.parked.length;
  }

  onReply(id: number, reply: StepReply): void {
    const resolve = this.replies.get(id);
    this.replies.delete(id);
    resolve?.(reply);
  }

  /** The turn is over: steps that wait reject. */
  stop(): void {
    const reason = new Error('The turn was stopped');
    this.leaving.abort(reason);
    this.stopping.abort(reason);
  }

  /** Stores that a step begins, or its next try. */
  async begin(
    { record, undoes, compensates }: HostedStep,
    more: {
      ms?: number;
      agent?: string;
      request?: string;
      streams?: true;
      decision?: OutcomeDecision;
    } = {},
  ): Promise<Stored> {
    if (this.hasFailed && !undoes) return this.stopped;
    const { id, name, nth, kind, alone } = record;
    const undo = compensates ? { compensates } : {};
    const reply = await this.stored({ op: 'begin', id, name, nth, kind, alone, ...more, ...undo });
    record.attempts += 1;
    delete record.isUnknown;
    delete record.answer;
    if (reply.key !== undefined) record.key = reply.key;
    return reply;
  }

  /** Resolves when the worker has stored it. Rejects with a StepError if the worker reports that the step has failed. */
  async stored(message: StepMessage): Promise<Stored> {
    this.stopping.signal.throwIfAborted();
    if (this.mismatch !== undefined) return this.stopped;
    if (this.isReplay) return this.park({});
    const replied = new Promise<StepReply>((resolve) => this.replies.set(message.id, resolve));
    this.channel.send(message);
    const reply = await Promise.race([replied, this.stopped]);
    if (!('error' in reply)) return reply;
    throw new StepError(message.op === 'begin' ? message.name : '', reply.error);
  }

  /** Waits in the process for a short time. For a longer one the turn is left, unless the step `staysHere`. */
  async until(time: number | undefined, staysHere = false): Promise<void> {
    const ms = time === undefined ? 0 : time - Date.now();
    if (ms > IN_PLACE_MS && !staysHere) await this.park({ until: time ?? 0 });
    if (ms > 0) await delay(ms, undefined, { signal: this.stopping.signal });
  }

  /** Waits for something that only another attempt will see. */
  park(what: StepWait): Promise<never> {
    this.parked.push(what);
    this.leaveSoon();
    return this.stopped;
  }

  /**
   * Leaves the turn at once. Steps that run are aborted, and nothing more is stored. The step never settles: an author who catches all
   * errors would continue with code that does not fit.
   */
  leave(mismatch: string): Promise<never> {
    this.mismatch = mismatch;
    this.channel.leave();
    this.leaving.abort(new Error('The code of the agent has changed'));
    return this.stopped;
  }

  /** Leaves the turn, and begins the next execution. @param state JSON */
  continueAs(state: string): Promise<never> {
    this.isContinuing = true;
    this.channel.park({ continueAs: state });
    return this.stopped;
  }

  /** Leaves the turn as soon as all steps under way wait. */
  leaveSoon(): void {
    if (this.parked.length === 0) return;
    setImmediate(() => {
      if (this.isContinuing || this.leaving.signal.aborted || !this.allWait || !this.deliveries.isEmpty)
        return;
      const input = nextQuestion(this.parked);
      const patient = input ? Date.now() + ASKING_MS : 0;
      const times = this.parked.flatMap(({ until, isOfServer }) =>
        until === undefined ? [] : [isOfServer ? Math.max(until, patient) : until],
      );
      const wakeInMs = times.length > 0 ? Math.max(0, Math.min(...times) - Date.now()) : undefined;
      this.channel.park({ ...(input && { input }), ...(wakeInMs !== undefined && { wakeInMs }) });
    });
  }
}

/**
 * The question that the task asks: the first one that was not asked. Otherwise the last question, because the code may no longer
 * need the earlier ones.
 */
function nextQuestion(waits: readonly StepWait[]): Parked['input'] {
  const questions = waits.filter(({ input }) => input);
  const latest = questions.toSorted((a, b) => (b.asked ?? 0) - (a.asked ?? 0))[0];
  return (questions.find(({ asked }) => asked === undefined) ?? latest)?.input;
}
