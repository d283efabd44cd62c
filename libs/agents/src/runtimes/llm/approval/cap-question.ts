import type { Message } from '@baton/a2a';
import { formatMicros, parseMicros } from '@baton/config';
import { jsonPart, plainTextPart } from '../../../agent-runtime.js';
import type { ApprovalRequest, Decision } from '../../../approvals.js';
import type { CapQuestion } from '../../../cap-reached.js';

/** Name of the tool in the question, for readers of approvals. */
const TOOL = 'spending_cap';

/** The id of a question about a cap in its task. No call has such an id. @param number counts from 1 */
export const capQuestionId = (number: number): string => `cap-${number}`;

/** Asks a person whether the task may spend more than a cap allows. @param problem the fault of the previous answer */
export function capQuestion(
  callId: string,
  { reason, micros, currency }: CapQuestion,
  problem?: string,
): Message['parts'] {
  const amount = formatMicros(micros);
  const request: ApprovalRequest = {
    callId,
    tool: TOOL,
    description: reason,
    input: { amount, currency, reason },
  };
  const lines = [
    ...(problem === undefined ? [] : [problem]),
    reason,
    `Answer yes to let this task and the tasks below it spend ${amount} ${currency} more, or no to end it.`,
    `For another amount answer with the data part {"approval": {"callId": "${callId}", "approved": true, "input": {"amount": "${amount}"}}}.`,
  ];
  return [plainTextPart(lines.join('\n')), jsonPart({ approval: request })];
}

/** The fault of the input of an answer; undefined: there is none. */
export function capInputProblem(input: unknown): string | undefined {
  const { amount } = (input ?? {}) as { amount?: unknown };
  const micros = typeof amount === 'string' ? parseMicros(amount) : undefined;
  return micros !== undefined && micros > 0 ? undefined : 'amount must be a text such as "2.50"';
}

/** How much more the answer allows, in millionths. */
export function allowedMicros({ micros }: CapQuestion, { input }: Pick<Decision, 'input'>): number {
  const { amount } = (input ?? {}) as { amount?: unknown };
  return (typeof amount === 'string' && parseMicros(amount)) || micros;
}
