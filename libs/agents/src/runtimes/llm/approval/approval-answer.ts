import { type Message, textOf } from '@baton/a2a';
import { z } from 'zod';
import { type Decision, MAX_REASON } from '../../../approvals.js';

export interface AnsweredCalls {
  decisions: Decision[];
  /** Why the message is no valid answer. */
  problem?: string;
}

const RULE =
  'must be {"approval": {"callId": <id>, "approved": true or false, "reason": <text, if any>, ' +
  '"input": <the changed input of the call, if it is approved with another one>}}';
const approval = z
  .strictObject({
    callId: z.string().optional(),
    approved: z.boolean(),
    reason: z.string().max(MAX_REASON).optional(),
    input: z.unknown().optional(),
  })
  .refine(({ approved, input }) => approved || input === undefined);
const dataAnswer = z.object({ approval: z.union([approval, z.array(approval)]) });

const YES = new Set([
  'y',
  'yes',
  'yes please',
  'ok',
  'okay',
  'sure',
  'approve',
  'approved',
  'i approve',
  'approve all',
  'yes to all',
  'allow',
  'allowed',
  'allow all',
  'confirm',
  'confirmed',
  'go ahead',
  'do it',
  'proceed',
]);
/** These words also approve or refuse calls of several agents together. */
const YES_TO_ALL = new Set(['approve all', 'yes to all', 'allow all']);
const NO_TO_ALL = /^(no to|refuse|reject|deny|decline) all\b/;
const NO =
  /^(n|no|nope|never|refuse|refused|reject|rejected|deny|denied|decline|declined|stop|don'?t|do not|cancel)\b/;

/**
 * Reads the decisions in an answer. Data parts decide about one call or about all. Plain words decide about all; if
 * several agents ask, the words must say "all". A yes must be one of the known phrases. A text that starts with no is
 * a refusal, and the text is its reason.
 * @param known ids of all calls that were ever asked
 * @param waiting ids of the calls without an answer
 * @param forms ids of those among them that ask for data
 */
export function readAnswer(
  message: Message,
  known: readonly string[],
  waiting: readonly string[],
  forms: readonly string[] = [],
): AnsweredCalls {
  const text = textOf(message.parts).trim();
  const data = message.parts.flatMap(({ content }) =>
    content?.$case === 'data' ? [content.value as unknown] : [],
  );
  const answers = data.filter((value) => typeof value === 'object' && value !== null && 'approval' in value);
  if (answers.length > 0) return fromData(answers, text, known, waiting);
  const [form] = forms;
  // Only one thing is asked, so it needs no id.
  if (form !== undefined && waiting.length === 1 && data.length === 1)
    return { decisions: [{ ...decision(form, true, ''), input: data[0] }] };
  return fromText(text, waiting);
}

function fromData(
  answers: unknown[],
  text: string,
  known: readonly string[],
  waiting: readonly string[],
): AnsweredCalls {
  const parsed = answers.map((answer) => dataAnswer.safeParse(answer));
  if (parsed.some(({ success }) => !success)) return { decisions: [], problem: `A data part ${RULE}.` };
  const given = parsed.flatMap(({ data }) => data?.approval ?? []);
  const stranger = given.find(({ callId }) => callId !== undefined && !known.includes(callId));
  if (stranger) return { decisions: [], problem: `There is no call "${stranger.callId ?? ''}".` };
  if (given.some(({ callId }) => callId === undefined) && haveSeveralAgents(waiting)) {
    return { decisions: [], problem: 'Several agents ask: name the callId in each data part.' };
  }
  if (waiting.length > 1 && given.some(({ callId, input }) => callId === undefined && input !== undefined)) {
    return {
      decisions: [],
      problem: 'Several calls wait: name the callId of the one whose input is changed.',
    };
  }
  const decisions = given.flatMap(({ callId, approved, reason = text, input }) =>
    (callId === undefined ? waiting : [callId]).map((id) => ({
      ...decision(id, approved, reason),
      ...(input !== undefined && { input }),
    })),
  );
  return { decisions: firstOfEach(decisions).filter(({ callId }) => waiting.includes(callId)) };
}

function fromText(text: string, waiting: readonly string[]): AnsweredCalls {
  const words = text
    .toLowerCase()
    .replace(/[^\p{L}\p{N}']+/gu, ' ')
    .trim();
  const isToAll = YES_TO_ALL.has(words) || NO_TO_ALL.test(words);
  if ((YES.has(words) || NO.test(words)) && !isToAll && haveSeveralAgents(waiting)) {
    return { decisions: [], problem: 'Several agents ask, and that does not say which of them it is for.' };
  }
  if (YES.has(words)) return { decisions: waiting.map((id) => decision(id, true, '')) };
  if (!NO.test(words)) return { decisions: [], problem: 'That is neither yes nor no.' };
  return { decisions: waiting.map((id) => decision(id, false, text)) };
}

/** Whether calls of more than one agent wait. The part of an id before the last slash is the path of its agent. */
export const haveSeveralAgents = (callIds: readonly string[]): boolean =>
  new Set(callIds.map((callId) => callId.slice(0, callId.lastIndexOf('/') + 1))).size > 1;

const decision = (callId: string, approved: boolean, reason: string): Decision => ({
  callId,
  approved,
  ...(reason !== '' && { reason }),
});

/** If a message decides twice about a call, a refusal wins, or else the first decision. */
function firstOfEach(decisions: readonly Decision[]): Decision[] {
  const byCall = new Map<string, Decision>();
  for (const each of decisions) {
    const earlier = byCall.get(each.callId);
    if (!earlier || (earlier.approved && !each.approved)) byCall.set(each.callId, each);
  }
  return [...byCall.values()];
}
