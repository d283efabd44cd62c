import { EVENT_KIND, eventKindOf, textOf } from './agent-events.js';
import { historyTail } from './history.js';
import { type Artifact, type Message, type Part, Role, type Task, TaskState } from './model.js';
import { isTerminal } from './task-state.js';

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
 * The message with which a task has ended: the one of its last status, or, of a completed task whose agent
 * has replied with artifacts alone, their text as a message. Undefined while the task is at work, and where
 * there is nothing to say.
 */
export function finalMessage({ id, contextId, status, artifacts }: Task): Message | undefined {
  if (!status || !isTerminal(status.state)) return undefined;
  if (status.message || status.state !== TaskState.TASK_STATE_COMPLETED) return status.message;
  const text = replyText(artifacts);
  return text === '' ? undefined : agentMessage({ id, contextId }, replyId(id), [textPart(text)]);
}

/**
 * The task with its final message in its status and at the end of its history, for clients that look for the
 * reply there.
 * @param historyLength what the caller asked for: the reply counts as one message
 */
export function withReply(task: Task, historyLength?: number): Task {
  const message = finalMessage(task);
  if (!message || !task.status) return task;
  const said = task.history.at(-1)?.messageId === message.messageId;
  const history = said ? task.history : [...task.history, message];
  return { ...task, status: { ...task.status, message }, history: historyTail(history, historyLength) };
}

/** What was said in the earlier tasks of a conversation, oldest first, replies that were artifacts included. */
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

/** Metadata without what is Baton's own. */
export function ownMetadata(metadata: Artifact['metadata']): Artifact['metadata'] {
  if (!metadata || !(EVENT_KIND in metadata)) return metadata;
  const { [EVENT_KIND]: _kind, ...rest } = metadata;
  return rest;
}
