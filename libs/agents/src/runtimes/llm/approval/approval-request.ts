import type { Message } from '@baton/a2a';
import type { ApprovalRequest } from '../../../approvals.js';
import { dataPart, textPart } from '../../../reply.js';
import { haveSeveralAgents } from './approval-answer.js';

const MAX_SHOWN = 2000;

/** Thrown by a tool whose call waits for another task, which asks a person for these. */
export class ApprovalsPending extends Error {
  override readonly name = 'ApprovalsPending';

  constructor(readonly requests: readonly ApprovalRequest[]) {
    super('A task that the call waits for asks a person for approval');
  }
}

/**
 * What the person who must approve calls is asked: a text that says it all, and a data part for each call, for
 * programs. The answer is such a part with `approved` in it, or plain text.
 * @param problem what was wrong with an answer before
 */
export function approvalRequest(calls: readonly ApprovalRequest[], problem?: string): Message['parts'] {
  const asked = calls.length === 1 ? 'This call needs' : `These ${calls.length} calls need`;
  const answer = haveSeveralAgents(calls.map(({ callId }) => callId))
    ? 'Answer "yes to all" or "no to all", or about each with a data part.'
    : `Answer yes or no${calls.length === 1 ? '' : ' to all of them, or about each with a data part'}.`;
  const lines = [
    ...(problem === undefined ? [] : [problem]),
    `${asked} your approval:`,
    ...calls.map(({ agents, tool, input }) => `${whoAsks(agents)}${tool} ${shown(input)}`),
    answer,
  ];
  return [textPart(lines.join('\n')), ...calls.map((call) => dataPart({ approval: call }))];
}

/** `clerk (asked by desk, by lead): ` for a call of an agent further down. */
function whoAsks(agents: readonly string[] = []): string {
  const [asking, ...askedBy] = agents.toReversed();
  return asking === undefined ? '' : `${asking} (asked by ${askedBy.join(', by ')}): `;
}

function shown(input: unknown): string {
  const json = JSON.stringify(input, null, 2);
  return json.length <= MAX_SHOWN ? json : `${json.slice(0, MAX_SHOWN)}… (the data part has all of it)`;
}
