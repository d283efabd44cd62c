import { clock } from '@baton/telemetry';
import type { Turn } from '../../../agent-runtime.js';
import { type ApprovalRequest, approverOf, type Decision, isSentByAgent } from '../../../approvals.js';
import type { LlmConfig } from '../llm-config.js';
import type { Conversation } from '../conversation.js';
import { readAnswer } from './approval-answer.js';

/**
 * Checks the input to which a person has changed a call.
 * @returns the problem, or undefined
 */
export type CheckInput = (callId: string, input: unknown) => Promise<string | undefined>;

/**
 * Take this turn's message in, unless an earlier attempt has done so: as the answer about calls that wait for approval, or else as
 * a prompt. Only a person approves calls; an agent's words about them are no answer. Calls that had expired when the message was
 * accepted are refused, also if it approves them.
 * @returns why it is no answer, where one is waited for
 */
export async function takeMessage(
  turn: Turn,
  conversation: Conversation,
  check: CheckInput,
): Promise<string | undefined> {
  if (conversation.approvals.hasAnswered()) return undefined;
  const waiting = conversation.approvals.undecided();
  if (waiting.length === 0) {
    await conversation.begin();
    return undefined;
  }
  if (isSentByAgent(turn.message)) return 'Only a person can answer this, and not an agent.';
  const by = approverOf(turn.message);
  const expired = expiredCalls(conversation, waiting, by ? Date.parse(by.at) : clock.now());
  const { decisions, problem: wrong } = readAnswer(
    turn.message,
    conversation.approvals.askedAbout(),
    waiting,
    conversation.approvals.openForms(),
  );
  const problem = wrong ?? (await problemOfInputs(decisions, check));
  const isExpired = (callId: string): boolean => expired.some((each) => each.callId === callId);
  const answered = (problem === undefined ? decisions : [])
    .filter(({ callId }) => !isExpired(callId))
    .map((decision) => ({ ...decision, ...(by && { by }) }));
  if (problem !== undefined && expired.length === 0) return problem;
  await conversation.add({ kind: 'answered', decisions: [...expired, ...answered] });
  return expired.length < waiting.length ? problem : undefined;
}

/** The first problem of inputs that a person has changed. The agent of a child checks those of its own calls, and asks again. */
async function problemOfInputs(
  decisions: readonly Decision[],
  check: CheckInput,
): Promise<string | undefined> {
  for (const { callId, input } of decisions) {
    if (input === undefined || callId.includes('/')) continue;
    const wrong = await check(callId, input);
    if (wrong !== undefined) return `The changed input of "${callId}" is not valid: ${wrong}.`;
  }
  return undefined;
}

/** Calls whose approval has expired. */
function expiredCalls(conversation: Conversation, waiting: readonly string[], at: number): Decision[] {
  return waiting.flatMap((callId) => {
    const expiry = conversation.approvals.expiryOf(callId);
    if (expiry === undefined || expiry > at) return [];
    const reason = `no answer came before ${new Date(expiry).toISOString()}, when the question expired`;
    return [{ callId, approved: false, reason }];
  });
}

/**
 * The calls that wait for approval with the terms of the agent that makes them. Those of children have the terms of
 * their own agents. To ask again does not give more time.
 */
export function withTerms(
  calls: readonly ApprovalRequest[],
  { approvals: { guests, by, expires } }: Pick<LlmConfig, 'approvals'>,
  conversation: Conversation,
): ApprovalRequest[] {
  return calls.map((call) => {
    if (call.callId.includes('/')) return call;
    const expiry = conversation.approvals.expiryOf(call.callId) ?? (expires && clock.now() + expires);
    return {
      ...call,
      ...(guests && { guests: true as const }),
      ...(by === 'other' && { by }),
      ...(expiry !== undefined && { expiresAt: new Date(expiry).toISOString() }),
    };
  });
}

/** Journal entry of a question. */
export function waitingEntry(calls: readonly ApprovalRequest[]) {
  const expiring = calls.filter(({ callId, expiresAt }) => expiresAt !== undefined && !callId.includes('/'));
  const forms = calls.filter(({ question }) => question && 'requestedSchema' in question);
  const expiresAt = Object.fromEntries(expiring.map(({ callId, expiresAt: at = '' }) => [callId, at]));
  return {
    kind: 'waiting' as const,
    callIds: calls.map(({ callId }) => callId),
    ...(expiring.length > 0 && { expiresAt }),
    ...(forms.length > 0 && { forms: forms.map(({ callId }) => callId) }),
  };
}
