import {
  firstCharacters,
  type JsonObject,
  type Part,
  shortened,
  type Task,
  TaskState,
  type TaskStatus,
} from '@baton/a2a';
import { approvalsOf, asksForApproval } from '@baton/agents';
import { z } from 'zod';
import { McpError } from './mcp-error.js';
import type { McpRequest } from './mcp-request.js';

/** A call that a task asks a person to approve. */
type CallForApproval = NonNullable<ReturnType<typeof approvalsOf>>[number];

/** The questions that a client should ask a person. */
interface Elicitation {
  method: 'elicitation/create';
  params: { mode: 'form' | 'url'; message: string } & Record<string, unknown>;
}

/** By keys that are unique for the life of the task. */
export type Elicitations = Record<string, Elicitation>;

/** Hosts show the message in a dialog. */
const MAX_MESSAGE = 4_000;
/** A form of more fields fits no dialog. The person answers it in the console. */
const MAX_FIELDS = 50;

const field = z.looseObject({ type: z.enum(['string', 'number', 'integer', 'boolean']) });
/** A form as elicitations have it. An agent may have written anything. */
const form = z.object({
  type: z.literal('object'),
  properties: z
    .record(z.string().max(200), field)
    .refine((properties) => Object.keys(properties).length <= MAX_FIELDS),
  required: z.array(z.string()).max(MAX_FIELDS).optional(),
});

/** The form for a question that has none. */
const ANSWER_FORM = {
  type: 'object',
  properties: { answer: { type: 'string', title: 'Answer' } },
  required: ['answer'],
};

const APPROVAL_FORM = {
  type: 'object',
  properties: {
    approved: { type: 'boolean', title: 'Approve' },
    reason: { type: 'string', title: 'Reason', description: 'The agent reads it if you refuse' },
  },
  required: ['approved'],
};

/** The caller that would be asked. */
interface Asked {
  request: McpRequest;
  /** Whether the caller may approve calls. */
  mayApprove: boolean;
  /** Where a person signs in, and answers what a client cannot ask. */
  consoleUrl: string;
}

/** What a task waits for, as far as the client can ask a person. */
export function elicitationsOf({ status }: Task, { request, mayApprove, consoleUrl }: Asked): Elicitations {
  const { form: hasForms, url: hasUrls } = modesOf(request);
  if (status?.state === TaskState.TASK_STATE_AUTH_REQUIRED) {
    if (!hasUrls) return {};
    const params = { mode: 'url' as const, message: textOf(status) || 'Sign in', url: consoleUrl };
    return { [keyOf('sign-in', status)]: { method: 'elicitation/create', params } };
  }
  if (status?.state !== TaskState.TASK_STATE_INPUT_REQUIRED) return {};
  if (!asksForApproval(status)) {
    if (!hasForms) return {};
    const requestedSchema = formOf(status) ?? ANSWER_FORM;
    const params = { mode: 'form' as const, message: textOf(status) || 'The agent asks', requestedSchema };
    return { [keyOf('question', status)]: { method: 'elicitation/create', params } };
  }
  const calls = approvalsOf(status) ?? [];
  // Its owner may not approve, and the caller is usually the owner.
  if (!mayApprove || calls.some(({ by }) => by === 'other')) return {};
  return Object.fromEntries(
    calls.flatMap((call) => {
      const params = askedOf(call);
      if (!params || (params.mode === 'url' ? !hasUrls : !hasForms)) return [];
      return [[approvalKey(call, status), { method: 'elicitation/create' as const, params }]];
    }),
  );
}

/** What a person is asked about a call: to approve it, or what its tool itself asks. Undefined: no client can show it. */
function askedOf(call: CallForApproval): Elicitation['params'] | undefined {
  const { question } = call;
  if (!question) return { mode: 'form', message: describeCall(call), requestedSchema: APPROVAL_FORM };
  const message = describeQuestion(call);
  if ('url' in question) return { mode: 'url', message, url: question.url };
  const { data: requestedSchema } = form.safeParse(question.requestedSchema);
  return requestedSchema && { mode: 'form', message, requestedSchema };
}

const response = z.looseObject({
  action: z.enum(['accept', 'decline', 'cancel']),
  content: z.record(z.string(), z.unknown()).optional(),
});

/**
 * The parts of the message that answers the task, as A2A 1.0 writes them. Keys that the task does not wait for are ignored,
 * whatever they have: they may answer an earlier question, or be of another kind.
 * @throws McpError if a response that the task waits for is invalid
 */
export function answerParts({ status }: Task, given: Readonly<JsonObject>): object[] {
  if (status?.state !== TaskState.TASK_STATE_INPUT_REQUIRED) return [];
  if (asksForApproval(status)) {
    return (approvalsOf(status) ?? []).flatMap((call) => {
      const answer = responseIn(given, approvalKey(call, status));
      if (!answer) return [];
      const { action, content = {} } = answer;
      if (call.question && action === 'accept') {
        const input = 'url' in call.question ? {} : { input: content };
        return [{ data: { approval: { callId: call.callId, approved: true, ...input } } }];
      }
      // A closed dialog is not an approval.
      const approved = action === 'accept' && content.approved === true;
      const written =
        typeof content.reason === 'string' && content.reason !== '' ? content.reason : undefined;
      const reason = written ?? (action === 'accept' ? undefined : `the person chose to ${action}`);
      return [
        { data: { approval: { callId: call.callId, approved, ...(reason !== undefined && { reason }) } } },
      ];
    });
  }
  const answer = responseIn(given, keyOf('question', status));
  if (!answer) return [];
  const { action, content = {} } = answer;
  if (action !== 'accept') return [{ text: 'The person has declined to answer.' }];
  if (formOf(status)) return [{ data: content }];
  return [{ text: typeof content.answer === 'string' ? content.answer : JSON.stringify(content) }];
}

function responseIn(given: Readonly<JsonObject>, key: string): z.infer<typeof response> | undefined {
  if (!Object.hasOwn(given, key)) return undefined;
  const { data } = response.safeParse(given[key]);
  if (data) return data;
  throw new McpError(
    'badMeta',
    `params.inputResponses["${key}"]: must have an action, and content if it is accept`,
  );
}

/** A tool may ask again about the same call, and so may Baton if its outcome is unknown: the id of the message distinguishes them. */
const approvalKey = ({ callId, question, unknownOutcome }: CallForApproval, status: TaskStatus): string =>
  question || unknownOutcome ? keyOf(`approval/${callId}`, status) : `approval/${callId}`;

/** A question has the id of its message. */
const keyOf = (what: string, { message, timestamp }: TaskStatus): string =>
  `${what}/${message?.messageId || timestamp || ''}`;

/** Which kinds of elicitation the client has declared. A client that declares no kind has forms. */
function modesOf({ capabilities: { elicitation } }: McpRequest): { form: boolean; url: boolean } {
  if (typeof elicitation !== 'object' || elicitation === null) return { form: false, url: false };
  const url = 'url' in elicitation;
  return { form: 'form' in elicitation || !url, url };
}

function formOf({ message }: TaskStatus): z.infer<typeof form> | undefined {
  for (const { content } of message?.parts ?? []) {
    const value: unknown = content?.$case === 'data' ? content.value : undefined;
    if (typeof value !== 'object' || value === null || !('requestedSchema' in value)) continue;
    const parsed = form.safeParse(value.requestedSchema);
    if (parsed.success) return parsed.data;
  }
  return undefined;
}

/** The text of a question. */
export const textOf = ({ message }: TaskStatus, max = MAX_MESSAGE): string =>
  shortened((message?.parts ?? []).flatMap(textIn).join('\n'), max);

const textIn = ({ content }: Part): string[] => (content?.$case === 'text' ? [content.value] : []);

/** The question of a tool as a person reads it, with the tool that asks. */
function describeQuestion({ tool, server, description, agents }: CallForApproval): string {
  const lines = [
    `${tool}${server === undefined ? '' : ` (server ${server})`} asks${agents ? `, called by ${agents.join(' → ')}` : ''}:`,
    description || 'The tool needs an answer.',
  ];
  return shortened(lines.join('\n'), MAX_MESSAGE);
}

/** The call as a person reads it: the input is the last part, so nothing in it can pass for a line of ours. */
function describeCall({ tool, server, description, input, agents, unknownOutcome }: CallForApproval): string {
  const lines = [
    `Approve a call of ${tool}${server === undefined ? '' : ` (server ${server})`}?`,
    ...(agents ? [`Asked by ${agents.join(' → ')}.`] : []),
    ...(unknownOutcome
      ? ['The call was sent, and its outcome is not known. To approve it is to make it again.']
      : []),
    ...(description === '' ? [] : [firstCharacters(description, 1_000)]),
    `Input: ${JSON.stringify(input ?? null)}`,
  ];
  return shortened(lines.join('\n'), MAX_MESSAGE);
}
