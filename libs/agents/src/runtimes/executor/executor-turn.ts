import { type TaskStatus, endsTurn, StreamResponse } from '@baton/a2a';
import type { Logger } from '@baton/telemetry';
import { fromAgent } from '../../agent-metadata.js';
import type { AgentOutput, Turn } from '../../runtime.js';
import { type ErrorDetail, type FromAgent, type ToAgent, WINDOW, AgentError } from './protocol.js';

/** Time that an executor has to stop after `cancelTask`. */
const STOP_MS = 2_000;

/**
 * Yields the output of an executor in one turn. As on the SDK's own server, the turn ends with a bare message, with a
 * status update that ends turns, or when `execute` returns or calls `finished()`. A published task in such a state ends
 * the turn only when `execute` returns, because executors publish the stored task first and then continue.
 *
 * `cancelTask` is the only way to stop an executor. So it is called once for every reason: a cancel, a lost lease or a
 * shutdown (another worker then starts the turn again). An executor that ignores it is abandoned after 2 s, and its
 * later events are dropped.
 *
 * Rejects with the error of `execute`, unless the turn was over or stopped before.
 */
export async function* converse(
  stream: TurnStream,
  turn: Turn,
  signal: AbortSignal,
  logger: Logger,
): AsyncGenerator<AgentOutput> {
  // A function, because the compiler narrows `signal.aborted` after the first read.
  const stopped = (): boolean => signal.aborted;
  const conversation = new Conversation(stream, turn, logger);
  const stop = (): void => conversation.stop();
  signal.addEventListener('abort', stop, { once: true });
  if (stopped()) stop();
  let held: TaskStatus | undefined;
  let isOver = false;
  try {
    for await (const output of stream.outputs()) {
      // The output is dropped. This loop only waits until the executor ends.
      if (stopped()) continue;
      const said = conversation.own(output);
      if (said.$case === 'task') {
        held = endsTheTurn(said.value.status) ? said.value.status : undefined;
        yield held ? { ...said, value: { ...said.value, status: undefined } } : said;
        continue;
      }
      if (said.$case === 'statusUpdate') {
        held = undefined;
        isOver = endsTheTurn(said.value.status);
      }
      if (said.$case === 'message') isOver = true;
      yield said;
      if (isOver) return;
    }
    if (stopped()) return;
    stream.throwIfFailed();
    isOver = true;
    if (held) yield statusOf(turn, held);
  } finally {
    signal.removeEventListener('abort', stop);
    // The reader left before the end: stop the executor.
    if (!isOver) conversation.stop();
    conversation.close();
  }
}

/** Stops the executor of one turn, and corrects the ids of its output. */
class Conversation {
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

  /** Replaces the ids of the output by those of this task, and drops metadata that only the platform writes. */
  own(said: AgentOutput): AgentOutput {
    const output = fromAgent(said);
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

function statusOf({ task }: Turn, status: TaskStatus): AgentOutput {
  return {
    $case: 'statusUpdate',
    value: { taskId: task.id, contextId: task.contextId, status, metadata: undefined },
  };
}

const MAX_LINES = 20;
const MAX_LINE = 1_000;
/** Credit is returned in portions of this size. */
const CREDIT = WINDOW / 4;

type Batch = Extract<FromAgent, { type: 'events' }>;

/** The worker's side of one turn in an agent's process. */
export class TurnStream {
  private batches: Batch[] = [];
  private isFinished = false;
  private failure: Error | undefined;
  private owed = 0;
  private readonly lines: string[] = [];
  private wake: () => void = () => undefined;
  /** `execute` has returned. */
  hasReturned = false;

  constructor(
    readonly turn: number,
    private readonly send: (message: ToAgent) => void,
  ) {}

  /** Yields the events in order until the turn has no more, or until `close`. */
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

  events(batch: Batch): void {
    if (this.isFinished) return;
    this.batches.push(batch);
    this.wake();
  }

  /** The turn has no further events. */
  end(): void {
    this.isFinished = true;
    this.wake();
  }

  /** `execute` returned, or threw `error`. */
  returned(error?: ErrorDetail): void {
    this.hasReturned = true;
    if (error) this.fail(new AgentError({ ...error, output: this.output }));
    this.end();
  }

  /** Fails the turn, even if `execute` still runs. */
  fail(failure: Error): void {
    this.failure ??= failure;
    this.end();
  }

  /** Keeps a console line. An error of the turn includes the last ones. */
  line(text: string): void {
    this.lines.push(text.slice(0, MAX_LINE));
    if (this.lines.length > MAX_LINES) this.lines.shift();
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
  if (!payload) throw new TypeError('publish() was given an event that says nothing');
  return payload;
}
