import { StreamResponse } from '@baton/a2a';
import { type AgentExecutionEvent, DefaultExecutionEventBus } from '@a2a-js/sdk/server';
import type { AgentOutput } from '../../runtime.js';

const KINDS = ['message', 'task', 'statusUpdate', 'artifactUpdate'];

/**
 * The bus one executor publishes one turn on, readable as an async iterable: every event in order, as a
 * complete copy, until the bus is finished and read empty. What is published after that is ignored.
 */
export class TurnBus extends DefaultExecutionEventBus {
  private waiting: AgentOutput[] = [];
  private closed = false;
  private wake: () => void = () => undefined;

  /** Throws TypeError, into the executor that called, for what is not an event. */
  override publish(event: AgentExecutionEvent): void {
    if (this.closed) return;
    this.waiting.push(copyOf(event));
    super.publish(event);
    this.wake();
  }

  /** No event follows. Called by the executor, or when it has returned. */
  override finished(): void {
    if (this.closed) return;
    this.closed = true;
    super.finished();
    this.wake();
  }

  async *outputs(): AsyncGenerator<AgentOutput> {
    for (;;) {
      const batch = this.waiting;
      this.waiting = [];
      yield* batch;
      if (this.waiting.length > 0) continue;
      if (this.closed) return;
      await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }
}

/**
 * The event as the platform's own: fields that a JavaScript author left out are filled in, and changes that
 * the executor makes to its object after publishing do not reach the log.
 */
function copyOf(event: AgentExecutionEvent | undefined): AgentOutput {
  // Authors of JavaScript have no compiler to tell them.
  const { kind, data } = (event ?? {}) as Partial<AgentExecutionEvent>;
  if (kind === undefined || !KINDS.includes(kind) || typeof data !== 'object') {
    throw new TypeError(`publish() takes {kind, data}, kind being one of ${KINDS.join(', ')}`);
  }
  const payload = { $case: kind, value: data } as AgentOutput;
  // eslint-disable-next-line no-restricted-properties -- a copy of what is in memory
  const json: unknown = JSON.parse(JSON.stringify(StreamResponse.toJSON({ payload })));
  const copy = StreamResponse.fromJSON(json).payload;
  if (!copy) throw new TypeError(`publish() was given an empty ${kind}`);
  return copy;
}
