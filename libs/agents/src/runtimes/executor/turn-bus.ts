import { StreamResponse } from '@a2a-js/sdk';
import { type AgentExecutionEvent, DefaultExecutionEventBus } from '@a2a-js/sdk/server';

const KINDS = ['message', 'task', 'statusUpdate', 'artifactUpdate'];

/** Where the events of a turn go. */
export interface EventSink {
  /** Largest event that is taken, in bytes of JSON. */
  readonly maxEventBytes: number;
  /** @param json ProtoJSON of a `StreamResponse` */
  event(json: string): void;
  finished(): void;
}

/**
 * The bus one executor publishes one turn on. An event is written down as it is published: what the executor does
 * to its object afterwards does not reach the log. What is published after `finished()` is ignored.
 */
export class TurnBus extends DefaultExecutionEventBus {
  private closed = false;

  constructor(private readonly sink: EventSink) {
    super();
  }

  /** Throws, into the executor that called, TypeError for what is no event and RangeError for one that is too large. */
  override publish(event: AgentExecutionEvent): void {
    if (this.closed) return;
    const json = jsonOf(event);
    const { maxEventBytes } = this.sink;
    if (json.length > maxEventBytes || Buffer.byteLength(json) > maxEventBytes) {
      throw new RangeError(`publish() was given an event of more than ${maxEventBytes} bytes of JSON`);
    }
    this.sink.event(json);
    super.publish(event);
  }

  /** No event follows. Called by the executor, or when it has returned. */
  override finished(): void {
    if (this.closed) return;
    this.closed = true;
    super.finished();
    this.sink.finished();
  }
}

function jsonOf(event: AgentExecutionEvent | undefined): string {
  // Authors of JavaScript have no compiler to tell them.
  const { kind, data } = (event ?? {}) as { kind?: AgentExecutionEvent['kind']; data?: object | null };
  if (kind === undefined || !KINDS.includes(kind) || typeof data !== 'object' || data === null) {
    throw new TypeError(`publish() takes {kind, data}, kind being one of ${KINDS.join(', ')}`);
  }
  return JSON.stringify(StreamResponse.toJSON({ payload: { $case: kind, value: data } as never }));
}
