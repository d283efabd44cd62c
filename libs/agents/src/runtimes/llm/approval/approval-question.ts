import type { Message } from '@baton/a2a';
import { jsonPart, plainTextPart } from '../../../agent-runtime.js';
import type { ApprovalRequest } from '../../../approvals.js';
import { oneLine } from '../../../one-line.js';
import { haveSeveralAgents } from './approval-answer.js';

/** Maximum characters of an input or a text of a server that a person is shown. The data part has all of it. */
const MAX_SHOWN = 2000;

/**
 * The question to the person who must approve calls: a complete text, and a data part per call for programs. The answer
 * is such a data part with `approved`, or plain text.
 * @param problem the fault of the previous answer
 */
export function approvalRequest(calls: readonly ApprovalRequest[], problem?: string): Message['parts'] {
  const heading = headingOf(calls);
  const answer = haveSeveralAgents(calls.map(({ callId }) => callId))
    ? 'Answer "yes to all" or "no to all", or about each with a data part.'
    : `Answer yes or no${calls.length === 1 ? '' : ' to all of them, or about each with a data part'}.`;
  const lines = [
    ...(problem === undefined ? [] : [problem]),
    heading,
    ...calls.map((call) =>
      call.question
        ? questionText(call)
        : `${askingAgents(call.agents)}${call.tool} ${visibleJson(call.input)}${call.expiresAt === undefined ? '' : ` (until ${call.expiresAt})`}` +
          (call.unknownOutcome ? UNKNOWN_OUTCOME : ''),
    ),
    ...(calls.every(({ question }) => question) ? [] : [answer]),
  ];
  return [plainTextPart(lines.join('\n')), ...calls.map((call) => jsonPart({ approval: call }))];
}

function headingOf(calls: readonly ApprovalRequest[]): string {
  if (calls.every(({ question }) => question)) return 'A tool asks you before it continues:';
  return calls.length === 1
    ? 'This call needs your approval:'
    : `These ${calls.length} calls need your approval:`;
}

/** A question of a tool. It names the server, and of an address its host, so that a person can see which server asks. */
function questionText({ callId, agents, tool, server, description, question }: ApprovalRequest): string {
  const from = server === undefined ? '' : ` of the server ${server}`;
  const asks = `${askingAgents(agents)}${tool}${from} asks: ${shownLine(description)}`;
  const id = JSON.stringify(callId);
  if (question && 'url' in question) {
    return (
      `${asks}\nIt wants you to open an address of ${new URL(question.url).host}: ${question.url}\n` +
      'Open it only if you trust that host. Answer yes when you have, or no.'
    );
  }
  return (
    `${asks}\nIt wants: ${visibleJson(question?.requestedSchema)}\n` +
    `Answer with the data part {"approval": {"callId": ${id}, "approved": true, "input": {…}}}, or no. ` +
    'If nothing else is asked, the data alone is enough.'
  );
}

const shownLine = (text: string): string => oneLine(text).slice(0, MAX_SHOWN);

const UNKNOWN_OUTCOME =
  '\nThe call was sent, and its outcome is not known. Look at the system that it changes. Yes makes the call again.';

/** `clerk (asked by desk, by lead): ` for a call of a child task's agent. */
function askingAgents(agents: readonly string[] = []): string {
  const [asking, ...askedBy] = agents.toReversed();
  return asking === undefined ? '' : `${asking} (asked by ${askedBy.join(', by ')}): `;
}

/** Characters that change in which order a text is shown, or where its lines end. */
const REORDERING = /[\p{Bidi_Control}\u2028\u2029]/gu;

/** JSON of an input of the model. Characters that reorder a text are escaped, so that a person reads what the tool gets. */
function visibleJson(input: unknown): string {
  const json = JSON.stringify(input, null, 2).replace(
    REORDERING,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return json.length <= MAX_SHOWN ? json : `${json.slice(0, MAX_SHOWN)}… (the data part has all of it)`;
}
