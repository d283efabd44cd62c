import type { RunEvent, RunRecord } from '@baton/database';
import type { SpanState, TraceSpan } from './span.js';
import type { TraceMaterial } from './trace-material.js';

const RUN_STATES: Readonly<Record<RunRecord['state'], SpanState>> = {
  queued: 'waiting',
  suspended: 'waiting',
  running: 'running',
  succeeded: 'succeeded',
  failed: 'failed',
  canceled: 'canceled',
};

/** The id of the span of a turn. */
export const turnId = (runId: string): string => `turn ${runId}`;
/** The id of the span of an attempt of a turn. */
export const attemptId = (runId: string, attempt: number): string => `attempt ${runId} ${attempt}`;

/** An attempt. It has an `end` if it did not end with its run. */
interface RunAttempt {
  number: number;
  startedAt: Date;
  workerId?: string;
  end?: Extract<RunEvent, { ended: number }>;
}

/** A turn with the attempts of its run, and the waits before them. */
export function runSpans(
  { runs, statuses, histories }: Pick<TraceMaterial, 'runs' | 'statuses' | 'histories'>,
  run: RunRecord,
  index: number,
): TraceSpan[] {
  const next = runs[index + 1]?.startSequence ?? Infinity;
  const ofRun = statuses.filter(({ sequence }) => sequence > run.startSequence && sequence < next);
  const history = histories.get(run.runId) ?? [];
  const attempts = attemptsOf(ofRun, history);
  const state = RUN_STATES[run.state];
  const turn: TraceSpan = {
    id: turnId(run.runId),
    parentId: null,
    kind: 'turn',
    name: String(index + 1),
    startedAt: run.createdAt,
    endedAt: run.finishedAt,
    state,
  };
  const isUnclaimed = run.state === 'queued' || (attempts.length === 0 && run.state === 'running');
  const spans = [turn];
  let since: Date | undefined = run.createdAt;
  for (const [i, attempt] of attempts.entries()) {
    const following = attempts[i + 1];
    if (since) spans.push(queueSpan(run.runId, attempt.number, since, attempt.startedAt));
    spans.push(attemptSpan(run, attempt, following));
    if (attempt.end?.why === 'parked') spans.push(parkedSpan(run, attempt.end, history));
    since = attempt.end && queuedSince(attempt.end, history);
  }
  const last = attempts.at(-1);
  if (isUnclaimed && since) spans.push(queueSpan(run.runId, (last?.number ?? 0) + 1, since, null));
  return spans;
}

/** The attempts in their order: they begin when a worker claims the run. Those of earlier releases begin with their first status. */
function attemptsOf(statuses: TraceMaterial['statuses'], history: readonly RunEvent[]): RunAttempt[] {
  const attempts = new Map<number, RunAttempt>();
  const add = (number: number, startedAt: Date, workerId?: string): void => {
    if (number > 0 && !attempts.has(number))
      attempts.set(number, { number, startedAt, ...(workerId !== undefined && { workerId }) });
  };
  for (const event of history) if ('claimed' in event) add(event.claimed, event.at, event.worker);
  for (const { attempt, at } of statuses) add(attempt, at);
  for (const event of history) {
    const attempt = 'ended' in event ? attempts.get(event.ended) : undefined;
    if (attempt && 'ended' in event) attempt.end = event;
  }
  return [...attempts.values()].toSorted((a, b) => a.number - b.number);
}

/** From when on a run waits for a slot after the end of an attempt. Undefined: it is suspended or parked. */
function queuedSince(end: NonNullable<RunAttempt['end']>, history: readonly RunEvent[]): Date | undefined {
  return end.why === 'suspended' || end.why === 'parked' ? wokenAfter(end, history) : end.at;
}

const wokenAfter = (end: RunEvent, history: readonly RunEvent[]): Date | undefined =>
  history.slice(history.indexOf(end)).find((event) => 'woken' in event)?.at;

/** The wait of a run for other code. */
function parkedSpan(
  run: RunRecord,
  end: NonNullable<RunAttempt['end']>,
  history: readonly RunEvent[],
): TraceSpan {
  const endedAt = wokenAfter(end, history) ?? run.finishedAt;
  return {
    id: `parked ${run.runId} ${end.ended}`,
    parentId: turnId(run.runId),
    kind: 'parked',
    name: String(end.ended),
    startedAt: end.at,
    endedAt,
    state: endedAt ? 'succeeded' : 'waiting',
    ...(run.parked && !endedAt && { error: run.parked.problem }),
  };
}

const queueSpan = (runId: string, attempt: number, startedAt: Date, endedAt: Date | null): TraceSpan => ({
  id: `queue ${runId} ${attempt}`,
  parentId: turnId(runId),
  kind: 'queue',
  name: String(attempt),
  startedAt,
  endedAt,
  state: endedAt ? 'succeeded' : 'waiting',
});

/** An attempt whose own end is not known ends when the next one begins, or with the run. */
function attemptSpan(
  run: RunRecord,
  { number, startedAt, workerId, end }: RunAttempt,
  next: RunAttempt | undefined,
): TraceSpan {
  const worker = workerId ?? (next ? undefined : (run.workerId ?? undefined));
  const isLast = !next && !end;
  return {
    id: attemptId(run.runId, number),
    parentId: turnId(run.runId),
    kind: 'attempt',
    name: String(number),
    startedAt,
    endedAt: end?.at ?? (next ? next.startedAt : run.finishedAt),
    state: isLast ? RUN_STATES[run.state] : end?.why === 'crashed' ? 'failed' : 'succeeded',
    attempt: number,
    ...(worker !== undefined && { workerId: worker }),
    ...(end?.why === 'crashed' && { error: 'The worker stopped without a word, and its lease expired' }),
  };
}
