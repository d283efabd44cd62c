import { isInterrupted, isTerminal, stateName, TaskState } from '@baton/a2a';
import type {
  Descendant,
  LoggedStatus,
  ModelCallRecord,
  RunRecord,
  StepRecord,
  ToolCallRecord,
} from '@baton/database';
import type { SpanKind, SpanState, TraceSpan } from './span.js';

/** What is stored of a task's life. */
export interface TraceMaterial {
  taskId: string;
  /** The oldest first. */
  runs: readonly RunRecord[];
  /** In their order. */
  statuses: readonly LoggedStatus[];
  modelCalls: readonly ModelCallRecord[];
  toolCalls: readonly ToolCallRecord[];
  steps: readonly StepRecord[];
  descendants: readonly Descendant[];
}

const STEP_KINDS: Readonly<Record<string, SpanKind>> = { sleep: 'sleep', input: 'question' };

const RUN_STATES: Readonly<Record<RunRecord['state'], SpanState>> = {
  queued: 'waiting',
  suspended: 'waiting',
  running: 'running',
  succeeded: 'succeeded',
  failed: 'failed',
  canceled: 'canceled',
};

const turnId = (runId: string): string => `turn ${runId}`;
const attemptId = (runId: string, attempt: number): string => `attempt ${runId} ${attempt}`;
const after = (at: string, ms: number): Date => new Date(Date.parse(at) + ms);

/**
 * The trace of a task: its turns with their waits and attempts, in these the calls of models and tools and the durable steps, and
 * between them the questions; and its children. Pure: the same material gives the same trace.
 * @returns spans in the order in which they began
 */
export function traceOf(material: TraceMaterial): TraceSpan[] {
  const turns = material.runs.map((run, i) => turnSpans(material, run, i));
  const attempts = new Set(turns.flat().map(({ id }) => id));
  /** The attempt, if the log knows it, or the turn. */
  const within = ({ runId, attempt }: { runId: string; attempt: number }): string =>
    attempts.has(attemptId(runId, attempt)) ? attemptId(runId, attempt) : turnId(runId);
  const spans = [
    ...turns.flat(),
    ...material.modelCalls.flatMap((call, i) => modelSpan(call, i, within)),
    ...material.toolCalls.map((call) => toolSpan(call, within)),
    ...material.steps.map((step, i) => stepSpan(step, i, material)),
    ...questionSpans(material),
    ...material.descendants.map((child) => childSpan(child, material.taskId)),
  ];
  return spans.toSorted((a, b) => Number(a.startedAt) - Number(b.startedAt));
}

/** A turn with the waits and attempts of its run. An attempt ends when the next one begins, or with the run. */
function turnSpans({ runs, statuses }: TraceMaterial, run: RunRecord, index: number): TraceSpan[] {
  const end = runs[index + 1]?.startSequence ?? Infinity;
  const ofRun = statuses.filter(({ sequence }) => sequence > run.startSequence && sequence < end);
  const begun = new Map<number, Date>();
  for (const { attempt, at } of ofRun) {
    if (attempt > 0 && !begun.has(attempt)) begun.set(attempt, at);
  }
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
  const spans = [turn];
  const numbers = [...begun.keys()];
  const [first] = begun.values();
  if (first !== undefined || state === 'waiting' || state === 'running') {
    spans.push({
      id: `queue ${run.runId}`,
      parentId: turn.id,
      kind: 'queue',
      name: 'queue',
      startedAt: run.createdAt,
      endedAt: first ?? null,
      state: first ? 'succeeded' : 'waiting',
    });
  }
  for (const [i, number] of numbers.entries()) {
    const isLast = i === numbers.length - 1;
    const next = numbers[i + 1];
    spans.push({
      id: attemptId(run.runId, number),
      parentId: turn.id,
      kind: 'attempt',
      name: String(number),
      startedAt: begun.get(number) ?? run.createdAt,
      endedAt: isLast ? run.finishedAt : (begun.get(next ?? 0) ?? null),
      // An attempt that another one followed has died, or has slept.
      state: isLast ? state : 'succeeded',
      attempt: number,
      ...(isLast && run.workerId !== null && { workerId: run.workerId }),
    });
  }
  return spans;
}

/** Calls of releases up to 0.2 have no time and no span. */
function modelSpan(
  { at, ms, model, runId, attempt, error, position }: ModelCallRecord,
  index: number,
  within: (call: { runId: string; attempt: number }) => string,
): TraceSpan[] {
  if (at === null || ms === null) return [];
  return [
    {
      id: `model ${position}`,
      parentId: within({ runId, attempt }),
      kind: 'model',
      name: model,
      startedAt: new Date(at),
      endedAt: after(at, ms),
      state: error === null ? 'succeeded' : 'failed',
      attempt,
      modelCall: index,
      entry: position,
      ...(error !== null && { error }),
    },
  ];
}

const toolSpan = (
  { at, ms, tool, runId, attempt, ok, position }: ToolCallRecord,
  within: (call: { runId: string; attempt: number }) => string,
): TraceSpan => ({
  id: `tool ${position}`,
  parentId: within({ runId, attempt }),
  kind: 'tool',
  name: tool,
  startedAt: new Date(at),
  endedAt: after(at, ms),
  state: ok ? 'succeeded' : 'failed',
  attempt,
  entry: position,
});

/** Steps go on over attempts, so a step is in the turn in which it began. One that its task did not wait for ends with it. */
function stepSpan(step: StepRecord, index: number, { runs, statuses }: TraceMaterial): TraceSpan {
  const startedAt = new Date(step.startedAt);
  const run = runs.findLast(({ createdAt }) => createdAt <= startedAt);
  const end = statuses.find(({ state }) => isTerminal(state));
  return {
    id: `step ${index}`,
    parentId: run ? turnId(run.runId) : null,
    kind: STEP_KINDS[step.kind] ?? 'step',
    name: step.name,
    startedAt,
    endedAt: step.endedAt === null ? (end?.at ?? null) : new Date(step.endedAt),
    state: step.endedAt === null && end ? 'canceled' : step.state,
    ...(step.error !== null && { error: step.error }),
  };
}

/** The task waits for its caller from a status that asks to the acceptance of the next message, or to its end. */
function questionSpans({ statuses, runs }: TraceMaterial): TraceSpan[] {
  return statuses.flatMap(({ sequence, state, at }, i) => {
    if (!isInterrupted(state)) return [];
    const answer = runs.find(({ startSequence }) => startSequence > sequence);
    const end = statuses.slice(i + 1).find((later) => isTerminal(later.state));
    return {
      id: `question ${sequence}`,
      parentId: null,
      kind: 'question',
      name: stateName(state),
      startedAt: at,
      endedAt: answer?.createdAt ?? end?.at ?? null,
      state: answer ? 'succeeded' : end ? 'canceled' : 'waiting',
    };
  });
}

const childSpan = (
  { taskId, parentTaskId, agentId, state, createdAt, statusAt }: Descendant,
  root: string,
): TraceSpan => ({
  id: `child ${taskId}`,
  parentId: parentTaskId === root ? null : `child ${parentTaskId}`,
  kind: 'child',
  name: agentId,
  startedAt: createdAt,
  endedAt: isTerminal(state) ? statusAt : null,
  state: childState(state),
  taskId,
});

function childState(state: TaskState): SpanState {
  if (state === TaskState.TASK_STATE_COMPLETED) return 'succeeded';
  if (state === TaskState.TASK_STATE_CANCELED) return 'canceled';
  if (isTerminal(state)) return 'failed';
  return isInterrupted(state) ? 'waiting' : 'running';
}
