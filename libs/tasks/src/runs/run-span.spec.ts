import type { ClaimedRun } from '@baton/database';
import type { Tracer } from '@baton/telemetry';
import { startRunSpan } from './run-span.js';

/** The spans of an attempt, and the trace that the run has then. */
function spansOf(attempt: number) {
  const names: [name: string, parent: string | undefined][] = [];
  const tracer = {
    start: (name: string, parent: string | undefined) => {
      names.push([name, parent]);
      return { traceparent: `of ${name}`, end: () => undefined };
    },
  };
  const run = { attempt, traceparent: 'caller', waitedSeconds: 1, snapshot: { task: {} } };
  startRunSpan(tracer as unknown as Tracer, run as unknown as ClaimedRun, 0);
  return { names, traceparent: run.traceparent };
}

describe('the spans of an attempt', () => {
  it('are in the trace of the run: the attempt, its claim, and, for the first one, the wait for a worker', () => {
    const [invoke, claim, receive] = [
      ['invoke_agent', 'caller'],
      ['claim run', 'caller'],
      ['receive runs', 'caller'],
    ];
    expect(spansOf(1)).toEqual({ names: [invoke, claim, receive], traceparent: 'of invoke_agent' });
    expect(spansOf(2).names).toEqual([invoke, claim]);
  });
});
