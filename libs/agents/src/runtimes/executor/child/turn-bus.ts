import { type AgentExecutionEvent, DefaultExecutionEventBus } from '@a2a-js/sdk/server';
import { StreamResponse } from '@a2a-js/sdk';

const KINDS = ['message', 'task', 'statusUpdate', 'artifactUpdate'];

/** Receives the events of a turn. */
export interface EventSink {
  /** Maximum size of an event, in bytes of JSON. */
  readonly maxEventBytes: number;
  /** @param json ProtoJSON of a `StreamResponse` */
  event(json: string): void;
  finished(): void;
}

/**
 * The event bus of one turn. It serializes each event at once, so later changes to the object have no effect. Events
 * after `finished()` are ignored.
 */
export class TurnBus extends DefaultExecutionEventBus {
  private closed = false;

  /** @param activated the URIs of the extensions that the executor has activated so far */
  constructor(
    private readonly sink: EventSink,
    private readonly activated: () => readonly string[] = () => [],
  ) {
    super();
  }

  /** Throws TypeError for a value that is no event, and RangeError for an event that is too large. */
  override publish(event: AgentExecutionEvent): void {
    if (this.closed) return;
    const json = jsonOf(event, this.activated());
    const { maxEventBytes } = this.sink;
    if (json.length > maxEventBytes || Buffer.byteLength(json) > maxEventBytes) {
      throw new RangeError(`publish() got an event of more than ${maxEventBytes} bytes of JSON`);
    }
    this.sink.event(json);
    super.publish(event);
  }

  /** Ends the events. The executor may call it; it is also called after `execute`. */
  override finished(): void {
    if (this.closed) return;
    this.closed = true;
    super.finished();
    this.sink.finished();
  }
}

/** @param activated extensions that its message or artifact names besides its own (A2A 1.0 §4.6) */
function jsonOf(event: AgentExecutionEvent | undefined, activated: readonly string[]): string {
  // Plain JavaScript has no compiler that checks the argument.
  const { kind, data } = (event ?? {}) as { kind?: AgentExecutionEvent['kind']; data?: object | null };
  if (kind === undefined || !KINDS.includes(kind) || typeof data !== 'object' || data === null) {
    throw new TypeError(`publish() takes {kind, data}, kind being one of ${KINDS.join(', ')}`);
  }
  const json = StreamResponse.toJSON({ payload: { $case: kind, value: data } as never }) as EventJson;
  if (activated.length > 0) {
    const { message, artifactUpdate, statusUpdate } = json;
    for (const part of [message, artifactUpdate?.artifact, statusUpdate?.status?.message]) {
      if (part) part.extensions = [...new Set([...(part.extensions ?? []), ...activated])];
    }
  }
  return JSON.stringify(json);
}

interface NamesExtensions {
  extensions?: string[];
}

/** Members of an event that can name extensions. */
interface EventJson {
  message?: NamesExtensions;
  artifactUpdate?: { artifact?: NamesExtensions };
  statusUpdate?: { status?: { message?: NamesExtensions } };
}
