import { isInterrupted, isTerminal, stateName, TaskState } from '@baton/a2a';
import type {
  Descendant,
  ModelCallRecord,
  OpenCallRecord,
  StepRecord,
  ToolCallRecord,
  TriedReceiver,
} from '@baton/database';
import { childIdOf } from '../core/child-id.js';
import { attemptId, runSpans, turnId } from './run-spans.js';
import type { SpanKind, SpanState, TraceSpan } from './span.js';
import type { TraceMaterial } from './trace-material.js';

const STEP_KINDS: Readonly<Record<string, SpanKind>> = {
  sleep: 'sleep',
  input: 'question',
  model: 'model',
  tool: 'tool',
};

const after = (at: string, ms: number): Date => new Date(Date.parse(at) + ms);

/** Where a call was made. */
type Within = (call: { runId: string; attempt: number }) => string;

/**
 * The trace of a task: its turns with their waits and attempts, in these the model and tool calls and the durable steps, and below
 * those the tasks that they have begun; between the turns the questions; and the deliveries to push receivers. Pure: the same material
 * gives the same trace.
 * @returns spans in the order in which they began
 */
export function traceOf(material: TraceMaterial): TraceSpan[] {
  const turns = material.runs.map((run, i) => runSpans(material, run, i));
  const attempts = new Set(turns.flat().map(({ id }) => id));
  /** The attempt, if it is known, or the turn. */
  const within: Within = ({ runId, attempt }) =>
    attempts.has(attemptId(runId, attempt)) ? attemptId(runId, attempt) : turnId(runId);
  const callers = callersOf(material);
  const spans = [
    ...turns.flat(),
    ...material.modelCalls.flatMap((call, i) => modelSpan(call, i, within)),
    ...material.toolCalls.map((call) => toolSpan(call, within)),
    ...material.openCalls.map((call) => openCallSpan(call, material, within)),
    ...material.steps.flatMap((step, i) =>
      isShownByCalls(step, material) ? [] : [stepSpan(step, i, material)],
    ),
    ...questionSpans(material),
    ...material.descendants.map((child) => childSpan(child, material.taskId, callers)),
    ...material.receivers.flatMap((receiver, i) => pushSpans(receiver, i, material)),
  ];
  // Imported entries may have invalid times.
  return spans
    .filter(({ startedAt, endedAt }) => isTime(startedAt) && (endedAt === null || isTime(endedAt)))
    .toSorted((a, b) => Number(a.startedAt) - Number(b.startedAt));
}

const isTime = (at: Date): boolean => !Number.isNaN(Number(at));

/** The spans of the calls and steps that may have begun a task, by the id that this task has. */
function callersOf({ taskId, toolCalls, openCalls, steps }: TraceMaterial): Map<string, string> {
  const callers = new Map<string, string>();
  for (const { call, position } of toolCalls)
    if (call !== null) callers.set(childIdOf(taskId, call), `tool ${position}`);
  for (const { call } of openCalls) callers.set(childIdOf(taskId, call), `tool ${call}`);
  for (const [i, { callId, kind }] of steps.entries())
    if (kind === 'agent') callers.set(childIdOf(taskId, callId), `step ${i}`);
  return callers;
}

/** Calls of releases up to 0.2 have no time and no span. */
function modelSpan(
  { at, ms, model, runId, attempt, error, position }: ModelCallRecord,
  index: number,
  within: Within,
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
  within: Within,
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

/**
 * A call without a result. It began when its model asked for it, or with the present attempt. It waits with its run, or for a
 * person. A span that its task did not wait for ends with the task.
 */
function openCallSpan(
  { call, tool, runId, at, waitsForApproval }: OpenCallRecord,
  { runs, statuses }: TraceMaterial,
  within: Within,
): TraceSpan {
  const asked = new Date(at);
  const end = statuses.find(({ state }) => isTerminal(state));
  const run = runs.at(-1);
  const isRunning = run?.state === 'running' && !waitsForApproval;
  const now = isRunning ? run : undefined;
  const begun =
    now && statuses.find((each) => each.sequence > now.startSequence && each.attempt === now.attempt);
  return {
    id: `tool ${call}`,
    parentId: within(now ?? { runId, attempt: 0 }),
    kind: 'tool',
    name: tool,
    startedAt: begun && begun.at > asked ? begun.at : asked,
    endedAt: end?.at ?? null,
    state: end ? 'canceled' : isRunning ? 'running' : 'waiting',
    ...(now && { attempt: now.attempt }),
  };
}

/**
 * A step that has called a model or a tool is shown by its calls. A step that is under way, or that has failed before a call, is a
 * span itself.
 */
const isShownByCalls = (
  { kind, endedAt, callId }: StepRecord,
  { modelCalls, toolCalls }: TraceMaterial,
): boolean =>
  endedAt !== null &&
  ((kind === 'model' && modelCalls.some((call) => call.callId === callId)) ||
    (kind === 'tool' && toolCalls.some(({ call }) => call === callId)));

/** Steps continue over attempts, so a step is in the turn in which it began. A span that its task did not wait for ends with the task. */
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
    ...(step.endedAt !== null && { entry: step.position }),
    ...(step.unknownOutcome && { unknownOutcome: step.unknownOutcome }),
  };
}

/**
 * The task waits for its caller from a status that asks to the acceptance of the next message, to its end, or until it continues without an
 * answer.
 */
function questionSpans({ statuses, runs, histories }: TraceMaterial): TraceSpan[] {
  return statuses.flatMap(({ sequence, state, at }, i) => {
    if (!isInterrupted(state)) return [];
    const answer = runs.find(({ startSequence }) => startSequence > sequence);
    const next = statuses[i + 1];
    const end = statuses.slice(i + 1).find((later) => isTerminal(later.state));
    // After an answer a worker appends `working` again.
    const isUnanswered = next?.state === TaskState.TASK_STATE_WORKING && next.attempt === 0;
    const endedAt = isUnanswered ? next.at : (answer?.createdAt ?? end?.at ?? null);
    const ended = isUnanswered ? 'failed' : answer ? 'succeeded' : end ? 'canceled' : 'waiting';
    const answered = isUnanswered ? undefined : answer;
    const sender = answered && histories.get(answered.runId)?.find((event) => 'sent' in event);
    return {
      id: `question ${sequence}`,
      parentId: null,
      kind: 'question',
      name: stateName(state),
      startedAt: at,
      endedAt,
      state: ended,
      ...(isUnanswered && { error: 'No answer came in time' }),
      ...(sender && { answeredBy: sender.by }),
    };
  });
}

const childSpan = (
  { taskId, parentTaskId, agentId, state, createdAt, statusAt }: Descendant,
  root: string,
  callers: ReadonlyMap<string, string>,
): TraceSpan => ({
  id: `child ${taskId}`,
  parentId: parentTaskId === root ? (callers.get(taskId) ?? null) : `child ${parentTaskId}`,
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

/** A receiver, and below it the newest tries. */
function pushSpans(
  { host, state, createdAt, isBehind, tries }: TriedReceiver,
  index: number,
  { statuses }: TraceMaterial,
): TraceSpan[] {
  const id = `push ${index}`;
  const last = tries.at(-1);
  const isOver = state !== 'active' || (!isBehind && statuses.some((each) => isTerminal(each.state)));
  const failed = last && last.error !== null ? last.error : undefined;
  return [
    {
      id,
      parentId: null,
      kind: 'push',
      name: host,
      startedAt: createdAt,
      endedAt: isOver ? (last?.at ?? createdAt) : null,
      state: state === 'dead' ? 'failed' : state === 'ended' ? 'canceled' : isOver ? 'succeeded' : 'waiting',
      ...(failed !== undefined && { error: failed }),
    },
    ...tries.map(({ at, ms, status, error }, i): TraceSpan => ({
      id: `delivery ${index} ${i}`,
      parentId: id,
      kind: 'delivery',
      name: status === null ? 'no answer' : `HTTP ${status}`,
      startedAt: new Date(Number(at) - ms),
      endedAt: at,
      state: error === null ? 'succeeded' : 'failed',
      ...(error !== null && { error }),
    })),
  ];
}
