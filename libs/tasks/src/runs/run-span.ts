import type { ClaimedRun } from '@baton/database';
import type { Span, Tracer } from '@baton/telemetry';

/**
 * Starts the span of one attempt. All work of the attempt belongs to it: it becomes the run's `traceparent`. The spans of what came
 * before, the wait for a worker and the claim, are made here as well. All are in the trace that is stored with the run, on whichever
 * worker an attempt runs.
 * @param receivedAt when this worker got the run, in ms since 1970
 */
export function startRunSpan(tracer: Tracer, run: ClaimedRun, receivedAt: number): Span {
  const { tenantId, taskId, runId, attempt, agentId, waitedSeconds, snapshot } = run;
  const parent = run.traceparent ?? undefined;
  const ids = { 'baton.tenant.id': tenantId, 'baton.task.id': taskId, 'baton.run.id': runId };
  const span = tracer.start('invoke_agent', parent, {
    attributes: {
      ...ids,
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.id': agentId,
      'gen_ai.conversation.id': snapshot.task.contextId,
      'baton.run.attempt': attempt,
    },
  });
  run.traceparent = span.traceparent;
  tracer
    .start('claim run', parent ?? span.traceparent, {
      kind: 'client',
      startTime: receivedAt,
      attributes: ids,
    })
    .end();
  if (attempt === 1) {
    const startTime = Date.now() - waitedSeconds * 1000;
    const attributes = {
      ...ids,
      'messaging.operation.name': 'receive',
      'messaging.destination.name': 'runs',
    };
    // In the run's trace, or in a new trace of the run.
    const kind = 'consumer';
    tracer.start('receive runs', parent ?? span.traceparent, { kind, startTime, attributes }).end();
  }
  return span;
}
