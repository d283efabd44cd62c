import { isJsonObject } from './json-object.js';
import { questionFields, schemaFields, type SpokenPart } from './question-fields.js';

/** A message of a task in the JSON of A2A 1.0, as far as its answers need it. */
export interface SpokenMessage {
  role?: string;
  parts?: SpokenPart[];
  metadata?: Record<string, unknown>;
}

/** A message that a caller has sent to a task. */
export interface AcceptedMessage<Message extends SpokenMessage = SpokenMessage> {
  message: Message;
  /** The parts of the message with which the task had asked before. Empty: it had not. */
  asked: readonly SpokenPart[];
}

/** What was answered to one question. */
export interface GivenAnswer {
  /** Such as `Approved`, `Declined` or `Answered`. */
  verb: string;
  /** The tool whose call was decided on, or that has asked itself. Unset: the agent has asked. */
  tool?: string;
  /** The reason of a refusal. */
  reason?: string;
  /** What was filled in, or the input to which the call was changed. */
  fields: { name: string; value: string }[];
}

/** A message with what it answers. */
export interface AnswerMessage<Part extends SpokenPart = SpokenPart> {
  answers: GivenAnswer[];
  /** Key of the principal that has decided on calls. */
  by?: string;
  /** The parts that are no such answers: words and files. */
  rest: Part[];
}

/** What a task is known by: its messages, and the runs that they began. */
interface AnsweredTask {
  task: unknown;
  runs: readonly { start_event: number; created_at: string }[];
}

/**
 * The messages of callers by the event that accepted each of them. The log of A2A has no messages of callers: the history of the task has
 * them. Each began a run, and of both the API gives the newest ones.
 */
export function sentMessages<Message extends SpokenMessage>({
  task,
  runs,
}: AnsweredTask): ReadonlyMap<number, AcceptedMessage<Message>> {
  const { history = [] } = task as { history?: Message[] };
  const sent: AcceptedMessage<Message>[] = [];
  let asked: readonly SpokenPart[] = [];
  for (const message of history) {
    if (message.role === 'ROLE_USER') sent.push({ message, asked });
    asked = message.role === 'ROLE_AGENT' ? (message.parts ?? []) : [];
  }
  const starts = runs.map(({ start_event: start }) => start).sort((one, other) => other - one);
  return new Map(
    sent.toReversed().flatMap((each, i) => (starts[i] === undefined ? [] : [[starts[i], each]])),
  );
}

/** What ended a question of a trace. @param endedAt of its span. Undefined: the API no longer gives the message */
export function answerAt<Message extends SpokenMessage>(
  task: AnsweredTask,
  endedAt: string | null,
): AcceptedMessage<Message> | undefined {
  const run = task.runs.find(({ created_at: at }) => at === endedAt);
  return run && sentMessages<Message>(task).get(run.start_event);
}

/** What a message answers: decisions on tool calls, and forms that were filled in. */
export function answersOf<Part extends SpokenPart>(
  { parts = [], metadata }: { parts?: Part[]; metadata?: Record<string, unknown> },
  asked: readonly SpokenPart[],
): AnswerMessage<Part> {
  const requests = asked.map(({ data }) => isJsonObject(data) && data.approval).filter(isJsonObject);
  const approver = metadata?.['baton.approver'];
  const by =
    isJsonObject(approver) && typeof approver.principal === 'string' ? approver.principal : undefined;
  const answers: GivenAnswer[] = [];
  const rest: Part[] = [];
  for (const part of parts) {
    const answer = decisionIn(part.data, requests) ?? formIn(part.data, asked);
    if (answer) answers.push(answer);
    else rest.push(part);
  }
  return { answers, rest, ...(by !== undefined && { by }) };
}

function decisionIn(data: unknown, requests: readonly Record<string, unknown>[]): GivenAnswer | undefined {
  const decision = isJsonObject(data) ? data.approval : undefined;
  if (!isJsonObject(decision) || typeof decision.approved !== 'boolean') return undefined;
  const { callId, approved, reason, input } = decision;
  const request = requests.find((each) => each.callId === callId);
  const question = isJsonObject(request?.question) ? request.question : undefined;
  const changed = question ? 'Answered' : input === undefined ? 'Approved' : 'Approved with another input';
  return {
    verb: approved ? changed : question ? 'Declined' : 'Rejected',
    ...(typeof request?.tool === 'string' && { tool: request.tool }),
    ...(typeof reason === 'string' && reason !== '' && { reason }),
    fields: approved && input !== undefined ? fieldsOf(input, question?.requestedSchema) : [],
  };
}

function formIn(data: unknown, asked: readonly SpokenPart[]): GivenAnswer | undefined {
  if (!isJsonObject(data) || !questionFields(asked)) return undefined;
  const schema = asked.flatMap(({ data: each }) => (isJsonObject(each) ? each.requestedSchema : []))[0];
  return { verb: 'Answered', fields: fieldsOf(data, schema) };
}

/** The members of an input with the words of its form. */
function fieldsOf(input: unknown, schema: unknown): GivenAnswer['fields'] {
  if (!isJsonObject(input)) return [{ name: 'input', value: wordOf(input) }];
  const known = (isJsonObject(schema) && schemaFields(schema)) || [];
  return Object.entries(input).map(([name, value]) => {
    const field = known.find((each) => each.name === name);
    const choice = field?.choices.find((each) => each.value === value);
    return { name: field?.label ?? name, value: choice?.label ?? wordOf(value) };
  });
}

const wordOf = (value: unknown): string => {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return typeof value === 'string' ? value : JSON.stringify(value);
};
