import { type Artifact, type Message, type Part, Role, type Task, TaskState } from './model.js';
import { historyTail, isTerminal } from './task.js';

/**
 * Metadata of an artifact that is not part of the agent's reply: what it is instead. `tool-call` has one data
 * part `{tool, ok}`, and `tool-start` of a call that has not ended `{tool}`; `agent-reply` (of an agent it has called) one data part `{agent, depth, content}`; any
 * other name is the agent's own.
 */
export const EVENT_KIND = 'baton.event';
/** Metadata of a status, kept on the task: tokens used for the whole task so far, `{inputTokens, outputTokens}`. */
export const USAGE = 'baton.usage';

/** What an artifact is if it is not part of the reply. */
export function eventKindOf({ metadata }: Pick<Artifact, 'metadata'>): string | undefined {
  const kind: unknown = metadata?.[EVENT_KIND];
  return typeof kind === 'string' && kind !== '' ? kind : undefined;
}

/** Tokens an agent has used for a task; 0 until it reports them. */
export function tokenUsage(metadata: Task['metadata']): { input: number; output: number } {
  const usage: unknown = metadata?.[USAGE];
  const { inputTokens, outputTokens } = (typeof usage === 'object' && usage !== null ? usage : {}) as Record<
    string,
    unknown
  >;
  return { input: countOf(inputTokens), output: countOf(outputTokens) };
}

const countOf = (value: unknown): number => (Number.isSafeInteger(value) ? Math.max(0, value as number) : 0);

/** The text of parts, put together. */
export const textOf = (parts: Message['parts']): string =>
  parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');

/** A part of text and nothing else. */
export const textPart = (value: string): Part => partOf({ $case: 'text', value });

/** A part of data and nothing else. */
export const dataPart = (value: unknown): Part => partOf({ $case: 'data', value });

const partOf = (content: Part['content']): Part => ({
  content,
  metadata: undefined,
  filename: '',
  mediaType: '',
});

/** The text of an agent's reply as its artifacts hold it, without what is not part of the reply. */
export const replyText = (artifacts: readonly Artifact[]): string =>
  artifacts.map((artifact) => (eventKindOf(artifact) === undefined ? textOf(artifact.parts) : '')).join('');

/** A message of the task's agent. */
export const agentMessage = (
  { id: taskId, contextId }: Pick<Task, 'id' | 'contextId'>,
  messageId: string,
  parts: Part[],
): Message => ({
  messageId,
  contextId,
  taskId,
  role: Role.ROLE_AGENT,
  parts,
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
});

/** Id of the message that stands for the reply of a task's agent. */
export const replyId = (taskId: string): string => `${taskId}-r`;

/**
 * The message with which a task has ended: the one of its last status, or, of a completed task whose agent has replied with
 * artifacts alone, their text as a message. Undefined while the task is working, and without text.
 */
export function finalMessage({ id, contextId, status, artifacts }: Task): Message | undefined {
  if (!status || !isTerminal(status.state)) return undefined;
  if (status.message || status.state !== TaskState.TASK_STATE_COMPLETED) return status.message;
  const text = replyText(artifacts);
  return text === '' ? undefined : agentMessage({ id, contextId }, replyId(id), [textPart(text)]);
}

/**
 * The task with its final message in its status and at the end of its history, for clients that read the
 * reply there.
 * @param historyLength what the caller asked for: the reply counts as one message
 */
export function withReply(task: Task, historyLength?: number): Task {
  const message = finalMessage(task);
  if (!message || !task.status) return task;
  const isInHistory = task.history.at(-1)?.messageId === message.messageId;
  const history = isInHistory ? task.history : [...task.history, message];
  return { ...task, status: { ...task.status, message }, history: historyTail(history, historyLength) };
}

/** The messages of the earlier tasks of a conversation, oldest first, replies that were artifacts included. */
export const conversationHistory = (earlier: readonly Task[]): Message[] =>
  earlier.flatMap((task) => withReply(task).history);

/** Parts with adjacent plain texts joined: many clients read the first part only. */
export function joinTexts(parts: readonly Part[]): Part[] {
  const joined: Part[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (last && isPlainText(last) && isPlainText(part)) {
      joined[joined.length - 1] = textPart(textOf([last, part]));
    } else joined.push(part);
  }
  return joined;
}

const isPlainText = ({ content, metadata }: Part): boolean => content?.$case === 'text' && !metadata;

/** Metadata without Baton's own keys. */
export function ownMetadata(metadata: Artifact['metadata']): Artifact['metadata'] {
  if (!metadata || !(EVENT_KIND in metadata)) return metadata;
  const { [EVENT_KIND]: _kind, ...rest } = metadata;
  return rest;
}
