import { type TaskStatus, endsTurn, isInterrupted, StreamResponse, textOf, USAGE } from '@baton/a2a';
import { type Logger, messageOf } from '@baton/telemetry';
import { fromAgent } from '../../agent-metadata.js';
import { type AgentOutput, type Turn, type TurnConsole } from '../../agent-runtime.js';
import type { ConsoleLevel } from '../../console-level.js';
import type { JournaledSteps } from './steps/journaled-steps.js';
import type { TurnSteps } from './steps/turn-steps.js';
import { JournalMismatch } from '../../journal-mismatch.js';
import {
  type AgentErrorDetail,
  type FromAgent,
  type SecretReply,
  type ToAgent,
  WINDOW,
  cut,
} from './protocol.js';
import { AgentError } from './agent-error.js';
import type { ModelPiece } from './model-protocol.js';
import { type Parked, STEP_LIMITS, type StepMessage, type StepReply } from './step-protocol.js';

/** Time that an executor has to stop after `cancelTask`. */
const STOP_MS = 2_000;
/** Characters of a message after a cancel that are kept. */
const MAX_LAST_WORDS = 4_000;

/**
 * Yields the output of an executor in one turn. As on the SDK's own server, the turn ends with a bare message, with a
 * status update that ends turns, or when `execute` returns or calls `finished()`. A published task in such a state ends
 * the turn only when `execute` returns, because executors publish the stored task first and then continue.
 *
 * `cancelTask` is the only way to stop an executor. So it is called once for every reason: a cancel, a lost lease or a
 * shutdown (another worker then starts the turn again). An executor that ignores it is abandoned after 2 s, and its
 * later events are dropped.
 *
 * Steps are stored when all that was published before them is in the log. If all steps under way wait, the code was left:
 * the turn ends with the question of `waitForInput`, or is suspended. `cancelTask` is not called then.
 *
 * Rejects with the error of `execute`, unless the turn was over or stopped before, with a `Suspension`, and with a `JournalMismatch`.
 * @param code hash of the agent's code; undefined = unknown
 * @returns the steps with which the code runs from its beginning, in the same turn; undefined: the turn is over, or was stopped
 */
export async function* converse(
  stream: TurnStream,
  turn: Turn,
  steps: TurnSteps,
  signal: AbortSignal,
  logger: Logger,
  code?: string,
): AsyncGenerator<AgentOutput, TurnSteps | undefined> {
  // A function, because the compiler narrows `signal.aborted` after the first read.
  const stopped = (): boolean => signal.aborted;
  const conversation = new ExecutorTurn(stream, turn, logger);
  const stop = (): void => conversation.stop();
  signal.addEventListener('abort', stop, { once: true });
  if (stopped()) stop();
  let held: TaskStatus | undefined;
  let isOver = false;
  try {
    for await (const sent of stream.sent()) {
      // The output is dropped. This loop only waits until the executor ends.
      if (stopped()) {
        if (signal.reason === 'canceled' && 'output' in sent) conversation.keepLastWords(sent.output);
        continue;
      }
      if ('step' in sent) {
        const { id } = sent.step;
        const reply = await steps.take(sent.step, signal, {
          piece: (piece) => stream.piece(id, piece),
          say: (output) => stream.say(output),
        });
        // Other steps and events continue while a model answers.
        if ('later' in reply) stream.replyLater(id, reply.later);
        else stream.reply(id, reply);
        continue;
      }
      if ('said' in sent) {
        yield sent.said;
        continue;
      }
      const own = conversation.own(sent.output);
      const fresh = sent.isReplayed ? steps.replayed(own) : own;
      if (!fresh) continue;
      const output = withUsage(fresh, steps.journal);
      if (output.$case === 'task') {
        held = endsTheTurn(output.value.status) ? output.value.status : undefined;
        yield held ? { ...output, value: { ...output.value, status: undefined } } : output;
        continue;
      }
      if (output.$case === 'statusUpdate') {
        held = undefined;
        isOver = endsTheTurn(output.value.status);
        if (asks(output.value.status)) await steps.questions.dropQuestions();
      }
      if (output.$case === 'message') isOver = true;
      yield output;
      if (isOver) return undefined;
    }
    if (stopped()) return undefined;
    stream.throwIfFailed();
    isOver = true;
    const { parked, mismatch } = stream;
    if (mismatch !== undefined) {
      throw new JournalMismatch(turn.agent.slug, cut(mismatch, MAX_MISMATCH), code);
    }
    if (parked?.continueAs !== undefined) return await steps.continueAs(parked.continueAs);
    if (parked?.input) yield await steps.questions.ask(parked.input, parked);
    else if (parked) throw steps.suspension(parked);
    else if (steps.journal.compensating?.canceled) {
      const undone = steps.undoneOutput();
      if (undone) yield undone;
    } else if (held) {
      if (asks(held)) await steps.questions.dropQuestions();
      yield withUsage(statusOf(turn, held), steps.journal);
    }
    return undefined;
  } finally {
    signal.removeEventListener('abort', stop);
    // The reader left before the end: stop the executor.
    if (!isOver) conversation.stop();
    conversation.close();
    steps.close();
  }
}

/** Stops the executor of one turn, and corrects the ids of its output. */
class ExecutorTurn {
  private stopped = false;
  private warned = false;
  private stopTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly stream: TurnStream,
    private readonly turn: Turn,
    private readonly logger: Logger,
  ) {}

  /** Call `cancelTask` once, and wait up to `STOP_MS` for the executor to end. */
  stop(): void {
    if (this.stopped || this.stream.hasReturned) return;
    this.stopped = true;
    this.stopTimer = setTimeout(() => {
      this.log('executor ignored cancelTask and was abandoned');
      this.stream.close();
    }, STOP_MS).unref();
    this.stream.cancel();
  }

  close(): void {
    clearTimeout(this.stopTimer);
    this.stream.close();
  }

  /** The task is canceled, and its log is closed: further output of the executor goes to its console. */
  keepLastWords(output: AgentOutput): void {
    const message = output.$case === 'statusUpdate' ? output.value.status?.message : undefined;
    const text = textOf(message?.parts ?? []).trim();
    if (text !== '') this.turn.console.write('info', `After the cancel: ${cut(text, MAX_LAST_WORDS)}`);
  }

  /** Replaces the ids of the output by those of this task, and drops metadata that only the platform writes. */
  own(raw: AgentOutput): AgentOutput {
    const output = fromAgent(raw);
    const { id: taskId, contextId } = this.turn.task;
    const { value } = output;
    const written = output.$case === 'task' ? output.value.id : (value as { taskId: string }).taskId;
    if (written !== '' && written !== taskId && !this.warned) {
      this.warned = true;
      this.log('executor published an event with the id of another task; the id was replaced', { written });
    }
    if (output.$case === 'task') return { ...output, value: { ...output.value, id: taskId, contextId } };
    return { ...output, value: { ...value, taskId, contextId } } as AgentOutput;
  }

  private log(message: string, fields: object = {}): void {
    const { tenantId, runId, task, agent } = this.turn;
    this.logger.warn(message, { tenantId, runId, taskId: task.id, agent: agent.slug, ...fields });
  }
}

const endsTheTurn = (status: TaskStatus | undefined): boolean =>
  status !== undefined && endsTurn(status.state);

const asks = (status: TaskStatus | undefined): boolean => status !== undefined && isInterrupted(status.state);

/**
 * The end of a turn has the tokens of the model calls that Baton has made for the task. Those that the agent reports would be counted
 * a second time.
 */
function withUsage(output: AgentOutput, { usage }: JournaledSteps): AgentOutput {
  if (!usage || output.$case !== 'statusUpdate' || !endsTheTurn(output.value.status)) return output;
  const reported = output.value.metadata?.[USAGE] as { cost?: unknown } | undefined;
  // What the agent has spent elsewhere.
  const cost = typeof reported?.cost === 'string' ? { cost: reported.cost } : {};
  const metadata = { ...output.value.metadata, [USAGE]: { ...usage, ...cost, metered: true } };
  return { ...output, value: { ...output.value, metadata } };
}

function statusOf({ task }: Turn, status: TaskStatus): AgentOutput {
  return {
    $case: 'statusUpdate',
    value: { taskId: task.id, contextId: task.contextId, status, metadata: undefined },
  };
}

/** The last lines of the console explain a crash. */
const MAX_LINES = 20;
/** Maximum characters of the reason why a journal does not fit. */
const MAX_MISMATCH = 1_000;
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
