import { clock } from '@baton/telemetry';
import { type Message, textOf } from '@baton/a2a';
import { z } from 'zod';
import {
  type ApprovalRequest,
  approverOf,
  type Decision,
  isSentByAgent,
  MAX_REASON,
} from '../../../approvals.js';
import { jsonPart, plainTextPart, type Turn } from '../../../agent-runtime.js';
import type { LlmConfig } from '../llm-config.js';
import type { Conversation } from '../conversation.js';

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

const MAX_SHOWN = 2000;

/**
 * The question to the person who must approve calls: a complete text, and a data part per call for programs. The answer
 * is such a data part with `approved`, or plain text.
 * @param problem the fault of the previous answer
 */
export function approvalRequest(calls: readonly ApprovalRequest[], problem?: string): Message['parts'] {
  const asked = askedOf(calls);
  const answer = haveSeveralAgents(calls.map(({ callId }) => callId))
    ? 'Answer "yes to all" or "no to all", or about each with a data part.'
    : `Answer yes or no${calls.length === 1 ? '' : ' to all of them, or about each with a data part'}.`;
  const lines = [
    ...(problem === undefined ? [] : [problem]),
    asked,
    ...calls.map((call) =>
      call.question
        ? questionText(call)
        : `${whoAsks(call.agents)}${call.tool} ${shown(call.input)}${call.expiresAt === undefined ? '' : ` (until ${call.expiresAt})`}` +
          (call.unknownOutcome ? UNKNOWN : ''),
    ),
    ...(calls.every(({ question }) => question) ? [] : [answer]),
  ];
  return [plainTextPart(lines.join('\n')), ...calls.map((call) => jsonPart({ approval: call }))];
}

function askedOf(calls: readonly ApprovalRequest[]): string {
  if (calls.every(({ question }) => question)) return 'A tool asks you before it goes on:';
  return calls.length === 1
    ? 'This call needs your approval:'
    : `These ${calls.length} calls need your approval:`;
}

/** A question of a tool. It names the server, and of an address its host, so that a person knows who asks. */
function questionText({ callId, agents, tool, server, description, question }: ApprovalRequest): string {
  const from = server === undefined ? '' : ` of the server ${server}`;
  const asks = `${whoAsks(agents)}${tool}${from} asks: ${oneLine(description)}`;
  const id = JSON.stringify(callId);
  if (question && 'url' in question) {
    return (
      `${asks}\nIt wants you to open an address of ${new URL(question.url).host}: ${question.url}\n` +
      'Open it only if you trust that host. Answer yes when you have, or no.'
    );
  }
  return (
    `${asks}\nIt wants: ${shown(question?.requestedSchema)}\n` +
    `Answer with the data part {"approval": {"callId": ${id}, "approved": true, "input": {…}}}, or no. ` +
    'If nothing else is asked, the data alone is enough.'
  );
}

/** Line breaks of a server could fake further lines. */
const oneLine = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').slice(0, MAX_SHOWN);

const UNKNOWN =
  '\nThe call was sent, and what became of it is not known. Look at the system that it changes. Yes makes the call again.';

/** `clerk (asked by desk, by lead): ` for a call of a child task's agent. */
function whoAsks(agents: readonly string[] = []): string {
  const [asking, ...askedBy] = agents.toReversed();
  return asking === undefined ? '' : `${asking} (asked by ${askedBy.join(', by ')}): `;
}

/** Characters that change in which order a text is shown, or where its lines end. */
const REORDERING = /[\p{Bidi_Control}\u2028\u2029]/gu;

/** The model has written it: a person must see it as the tool gets it. */
function shown(input: unknown): string {
  const json = JSON.stringify(input, null, 2).replace(
    REORDERING,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return json.length <= MAX_SHOWN ? json : `${json.slice(0, MAX_SHOWN)}… (the data part has all of it)`;
}

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
