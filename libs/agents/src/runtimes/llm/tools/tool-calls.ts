import { histogram, type Metrics, type Span } from '@baton/telemetry';
import type { ApprovalRequest } from '../../../approvals.js';
import { type AgentOutput, artifactChunk, type Turn } from '../../../agent-runtime.js';
import { Suspension } from '../../../suspension.js';
import { effectKey } from '../../../effect-key.js';
import { ChildNeedsSignIn } from '../../../child-needs-sign-in.js';
import { SignInNeeded } from '../../../sign-in-needed.js';
import { taskOfEffects } from '../../../task-origin.js';
import { ApprovalsPending } from '../approval/approvals-pending.js';
import type { Conversation } from '../conversation.js';
import { callIdOf, idsOf, type RecordedCall } from '../recorded-call.js';
import type { SchemaChecks } from '../schema-checks.js';
import { CallReports } from './call-reports.js';
import { UndecidedCall } from './undecided-call.js';
import { isSentNext } from './remote-call.js';
import type { AgentTool, ToolResult } from './tool-sources.js';
import {
  callArtifact,
  fileArtifacts,
  isStarted,
  progressArtifact,
  progressSaid,
  type ReportingCall,
  startArtifact,
} from '../turn-artifacts.js';

/** Tenants choose the names of tools, so no label has them. */
const TOOL_CALLS = histogram('baton_tool_call_seconds', 'Duration of calls of tools by models', [
  'kind',
  'outcome',
]);

/**
 * Makes the pending tool calls of the model's last step concurrently, without those that wait for approval. The beginning of each is
 * published at once, its result as soon as it is durable. Throws a `Suspension` if calls wait for other tasks, after all other calls
 * have their results.
 * @returns the calls that wait for approval, also those of child tasks
 */
export async function* runToolCalls(
  turn: Turn,
  conversation: Conversation,
  tools: readonly AgentTool[],
  checks: SchemaChecks,
  signal: AbortSignal,
  metrics: Metrics,
): AsyncGenerator<AgentOutput, ApprovalRequest[]> {
  const calls = await Promise.all(
    conversation
      .pendingCalls()
      .map((call) => prepare(conversation.approvals.asDecided(call), conversation, tools, checks, turn)),
  );
  const waiting = calls.filter(waits).map(approvalRequestOf);
  const due = calls.filter((one) => !waits(one));
  const reports = new CallReports();
  const make = async (one: (typeof due)[number]): Promise<void> => {
    const began = Date.now();
    if ('tool' in one && !isStarted(turn, one.call))
      reports.say(artifactChunk(turn, startArtifact(one.call)));
    const result =
      'tool' in one
        ? await measuredCall(turn, metrics, one, (span) =>
            makeCall(turn, one, conversation, { checks, reports, signal, span }),
          )
        : one.result;
    const time = { at: new Date(began).toISOString(), ms: Date.now() - began };
    const { call } = one;
    const { input } = conversation.approvals.decisionOn(call) ?? {};
    const changed = input === undefined ? {} : { input };
    await conversation.add({
      kind: 'result',
      ...idsOf(call),
      tool: call.toolName,
      ...changed,
      ...time,
      result,
    });
    reports.say(artifactChunk(turn, callArtifact(call, result, conversation.approvals.lastDecisionOn(call))));
    for (const file of fileArtifacts(call, result)) reports.say(artifactChunk(turn, file));
  };
  // By the order of the calls, because the questions are asked in it.
  const asked: ApprovalRequest[][] = [];
  const waitsFor: string[] = [];
  let wakeInMs = Infinity;
  const made = due.map((one, i) =>
    make(one).catch((error: unknown) => {
      if (error instanceof ApprovalsPending) asked[i] = [...error.requests];
      else if (error instanceof UndecidedCall && 'tool' in one)
        asked[i] = [approvalRequestOf({ ...one, isUnknown: true })];
      else if (error instanceof Suspension) {
        waitsFor.push(...error.taskIds);
        wakeInMs = Math.min(wakeInMs, error.wakeInMs ?? Infinity);
      } else throw error;
    }),
  );
  // The first failure ends the turn.
  const all = Promise.all(made);
  yield* reports.until(all);
  await all;
  if (waitsFor.length > 0 || wakeInMs < Infinity)
    throw new Suspension(waitsFor, wakeInMs < Infinity ? wakeInMs : undefined);
  return [...waiting, ...asked.flat()];
}

interface Callable {
  call: RecordedCall;
  tool: AgentTool;
  /** A person must still approve or refuse it. */
  waits: boolean;
  /** It may have been carried out. */
  isUnknown: boolean;
  /** The tool can verify the outcome, and no person has decided. */
  verifies?: boolean;
}

const waits = (one: Callable | { result: ToolResult }): one is Callable => 'tool' in one && one.waits;

/** Whether the journal gets an entry before a call is sent. If the worker then dies, the outcome is unknown and must be decided. */
const isNoted = (tool: AgentTool): boolean => tool.repeat !== 'again' || tool.verify !== undefined;

/** Finds the tool of a call, or the result of a call that must not be made. */
async function prepare(
  call: RecordedCall,
  conversation: Conversation,
  tools: readonly AgentTool[],
  checks: SchemaChecks,
  { origin }: Turn,
): Promise<Callable | { call: RecordedCall; result: ToolResult }> {
  const { toolName, input } = call;
  const decision = conversation.approvals.decisionOn(call);
  if (decision?.approved === false) return { call, result: refused(decision.reason) };
  const tool = tools.find(({ name }) => name === toolName);
  if (!tool) {
    const names = tools.map(({ name }) => name).join(', ') || 'none';
    return { call, result: failed(`There is no tool "${toolName}". The tools are: ${names}.`) };
  }
  const wrong = await checks.input(toolName, tool.inputSchema, input);
  if (wrong) return { call, result: failed(`The input of "${toolName}" is not valid: ${wrong}.`) };
  const isUnknown = isNoted(tool) && conversation.isSent(call);
  // The task of which this one is a fork may have made the call.
  const mayRepeat = origin !== undefined && origin.effectsOf === undefined && tool.repeat === 'never';
  if (!isUnknown) return { call, tool, isUnknown, waits: (tool.needsApproval || mayRepeat) && !decision };
  if (tool.verify && !conversation.approvals.repetitionOf(call))
    return { call, tool, isUnknown, verifies: true, waits: false };
  if (tool.repeat === 'never')
    return { call, result: failed(`${notKnown(toolName)} It was not made again.`) };
  const repetition = conversation.approvals.repetitionOf(call);
  if (repetition?.approved === false) return { call, result: notRepeated(toolName, repetition.reason) };
  return { call, tool, isUnknown, waits: !repetition };
}

/** Makes a call in a span of its own (OpenTelemetry, GenAI: execute tool). Input and result are not in it. */
export async function measuredCall(
  { span: parent }: Turn,
  metrics: Metrics,
  { call, tool }: { call: Pick<RecordedCall, 'toolCallId'>; tool: AgentTool },
  make: (span: Span | undefined) => Promise<ToolResult>,
): Promise<ToolResult> {
  const began = performance.now();
  let outcome = 'failed';
  const span = parent?.start(`execute_tool ${tool.name}`, {
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': tool.name,
      'gen_ai.tool.call.id': call.toolCallId,
      'gen_ai.tool.type': tool.server === undefined ? 'function' : 'extension',
    },
  });
  try {
    const result = await make(span);
    if (result.ok) outcome = 'ok';
    else span?.fail('tool_error');
    return result;
  } catch (error) {
    // The call waits for another task or for a person, and is made again.
    const isSuspended =
      error instanceof Suspension ||
      error instanceof ApprovalsPending ||
      error instanceof SignInNeeded ||
      error instanceof ChildNeedsSignIn;
    if (isSuspended) span?.set({ 'baton.suspended': true });
    else span?.fail(error instanceof UndecidedCall ? 'outcome_unknown' : '_OTHER');
    if (isSuspended) outcome = 'suspended';
    if (error instanceof UndecidedCall) outcome = 'unknown';
    throw error;
  } finally {
    metrics
      .get(TOOL_CALLS)
      .observe({ kind: kindOf(tool), outcome }, (performance.now() - began) / 1000, span?.traceparent);
    span?.end();
  }
}

function kindOf({ isOwn, isFunction, server }: AgentTool): string {
  if (isOwn) return 'own';
  if (isFunction) return 'function';
  return server === undefined ? 'agent' : 'mcp';
}

async function makeCall(
  turn: Turn,
  { call, tool, verifies }: Callable,
  conversation: Conversation,
  { checks, reports, signal, span }: MakingOptions,
): Promise<ToolResult> {
  const { toolName, input, step, index } = call;
  const kept = conversation.remoteCallOf(call);
  const answer = conversation.approvals.answerTo(call);
  const id = callIdOf(call);
  const key = effectKey(taskOfEffects(turn), 'call', id);
  const found = verifies ? await tool.verify?.(input, { key, signal }) : undefined;
  if (found) return found;
  if (isNoted(tool) && isSentNext(kept, answer)) await conversation.add({ kind: 'begun', ...idsOf(call) });
  const lanes = conversation
    .callsOf(step)
    .filter((each) => each.toolName === toolName && each.index <= index);
  const making = tool.execute(input, {
    id,
    key,
    lane: lanes.length,
    signal,
    traceparent: span?.traceparent,
    ...(answer && { answer }),
    kept,
    keep: (remote) => conversation.addRemoteCall(call, remote),
    report: progressOf(turn, { id, tool: toolName }, (output) => reports.say(output)),
    checkForm: (schema, value) => checks.input(toolName, schema, value),
  });
  return making.catch(async (error: unknown) => {
    // The server has refused it, so that it is made again after the sign-in.
    if (error instanceof SignInNeeded && conversation.isSent(call))
      await conversation.add({ kind: 'unsent', ...idsOf(call) });
    throw error;
  });
}

/** Maximum reports of one call in one attempt: each is an event in the log of the task. */
const MAX_REPORTS = 100;
/** Shortest time between two reports. A person reads no faster. */
const REPORT_MS = 1_000;

/** Publishes the progress of a call, as far as it is new. */
export function progressOf(
  turn: Turn,
  call: ReportingCall,
  say: (output: AgentOutput) => void,
): (text: string) => void {
  let last = -Infinity;
  let count = 0;
  let shown = progressSaid(turn, call);
  return (text) => {
    const now = performance.now();
    if (text === shown || now - last < REPORT_MS || count === MAX_REPORTS) return;
    last = now;
    count += 1;
    shown = text;
    say(artifactChunk(turn, progressArtifact(call, turn.secrets.redactor.text(text))));
  };
}

interface MakingOptions {
  checks: SchemaChecks;
  reports: CallReports;
  signal: AbortSignal;
  span: Span | undefined;
}

const failed = (text: string): ToolResult => ({ ok: false, content: text });

/** The result of a call that a person has refused, for the model. */
export const refused = (reason: string | undefined): ToolResult =>
  failed(
    `The user has refused this call${reason === undefined ? '' : `: ${reason}`}. ` +
      'It was not made; do not make it again unless the user asks for it.',
  );

/** The sentence for the model about a call whose outcome is unknown. */
export const notKnown = (tool: string): string =>
  `Whether "${tool}" was carried out is not known: the server stopped while the call was made.`;

/** The result of a call with an unknown outcome that a person does not let be made again, for the model. */
export const notRepeated = (tool: string, reason: string | undefined): ToolResult =>
  failed(
    `${notKnown(tool)} A person has decided that it is not made again${reason === undefined ? '' : `: ${reason}`}.`,
  );

const approvalRequestOf = ({ call, tool, isUnknown }: Callable): ApprovalRequest => ({
  callId: callIdOf(call),
  tool: call.toolName,
  description: tool.description,
  input: call.input,
  ...(tool.server !== undefined && { server: tool.server }),
  ...(isUnknown && { unknownOutcome: true as const }),
});
