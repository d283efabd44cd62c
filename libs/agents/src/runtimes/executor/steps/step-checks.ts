import { Message, type Part, textPart } from '@baton/a2a';
import { AgentError } from '../agent-error.js';
import { cut } from '../protocol.js';
import {
  errorExtras,
  OUTCOME_DECISIONS,
  type OutcomeDecision,
  type RecordedStep,
  type StateRequest,
  STEP_KINDS,
  STEP_LIMITS,
  type StepFailure,
  type StepMessage,
} from '../step-protocol.js';

// The checks of what an agent's process reports about steps. The library of Baton in it checks the same before it sends. So only a process
// with other code gets these errors.

/** Throws AgentError for a step that the code cannot begin. @param steps those of the execution */
export function assertBegin(
  { id, name, nth, kind, alone, agent, request }: Extract<StepMessage, { op: 'begin' }>,
  steps: readonly RecordedStep[],
): void {
  assertText(name, STEP_LIMITS.name * 4);
  assertText(agent, STEP_LIMITS.name * 4);
  assertText(request, kind === 'model' ? STEP_LIMITS.modelRequestBytes : STEP_LIMITS.resultBytes);
  const known = steps[id - 1];
  if (!known && id !== steps.length + 1) throw invalid('a step out of order');
  if (known && (known.ended || known.kind !== kind || known.name !== name))
    throw invalid('a step that has ended');
  if (
    typeof name !== 'string' ||
    name === '' ||
    !Number.isInteger(nth) ||
    typeof alone !== 'boolean' ||
    !STEP_KINDS.includes(kind)
  ) {
    throw invalid('a step without name or kind');
  }
}

/** Throws AgentError for a value that is not a part. */
export function partsOf(question: unknown[]): Part[] {
  try {
    const { parts } = Message.fromJSON({ parts: question });
    return parts.length > 0 ? parts : [textPart('')];
  } catch {
    throw invalid('a question that is no list of parts');
  }
}

/** The decision of the code about an unknown outcome, if there is one. Throws AgentError for an unknown one. */
export function decisionOf({ decision }: { decision?: OutcomeDecision }): { decision?: OutcomeDecision } {
  if (decision === undefined) return {};
  if (OUTCOME_DECISIONS.includes(decision)) return { decision };
  throw invalid('a decision about an outcome of no known kind');
}

/** The error for a message that the library never sends. @param problem completes "The agent's process sent …" */
export function invalid(problem: string): AgentError {
  return new AgentError({ name: 'StepError', message: `The agent's process sent ${problem}` });
}

/** Throws AgentError for a text that is too long, or is no text. Unset is allowed. @param maxBytes in UTF-8 */
export function assertText(text: unknown, maxBytes: number): void {
  if (text === undefined || (typeof text === 'string' && Buffer.byteLength(text) <= maxBytes)) return;
  throw invalid(`a step with a text of more than ${maxBytes} bytes`);
}

/** A time in ms. Throws AgentError unless it is a number from 0 to `max`. */
export function timeOf(ms: unknown, max: number): number {
  if (typeof ms === 'number' && ms >= 0 && ms <= max) return ms;
  throw invalid('a step with an invalid time');
}

/** The error of a step as it is stored: name, message and extras, cut to their maximum lengths. */
export function failureOf(error: unknown): StepFailure {
  const failure = (typeof error === 'object' && error !== null ? error : {}) as Partial<StepFailure>;
  return {
    name: cut(String(failure.name), 200),
    message: cut(String(failure.message), STEP_LIMITS.error),
    ...errorExtras(failure),
  };
}

/** The value of a JSON text that the library has made. */
// oxlint-disable-next-line no-restricted-properties -- bounded, and of the operator's code
export const parseOwnJson = (json: string): unknown => JSON.parse(json) as unknown;

/** Throws AgentError for a request that the library never sends. */
export function stateRequestOf(request: string): StateRequest {
  const { key, value, expected } = parseOwnJson(request || '{}') as Partial<StateRequest>;
  const isKey = typeof key === 'string' && key !== '' && key.length <= STEP_LIMITS.stateKey;
  const isVersion = expected === undefined || (Number.isSafeInteger(expected) && expected >= 0);
  if (!isKey || !isVersion) throw invalid('an invalid key or version');
  assertText(value, STEP_LIMITS.stateBytes);
  return { key, ...(value !== undefined && { value }), ...(expected !== undefined && { expected }) };
}

/** The call of another agent. Throws AgentError for a request that the library never sends. @param request JSON */
export function requestOf(request: string): { message: string; data?: unknown; taskId?: string } {
  const { message, data, taskId } = parseOwnJson(request || '{}') as Record<string, unknown>;
  if (typeof message !== 'string' || (taskId !== undefined && typeof taskId !== 'string')) {
    throw invalid('a call without a message');
  }
  return { message, ...(data !== undefined && { data }), ...(taskId !== undefined && { taskId }) };
}
