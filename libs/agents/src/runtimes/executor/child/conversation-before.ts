import { type Message, Role, Task } from '@a2a-js/sdk';
import type { TurnRequest } from '../protocol.js';
import type { HistoryMessage } from './steps.js';

/** Messages of a conversation, the newest ones. */
const MAX_MESSAGES = 100;
/** Their texts, in characters. The result of a step has at most 256 KiB. */
const MAX_CHARACTERS = 60_000;

/** The messages before the message of a turn: of earlier tasks of the context, and of earlier turns of the task. The oldest first. */
export function conversationBefore(request: Partial<TurnRequest>): HistoryMessage[] {
  const { contextId, referenceTasks = [], task, message } = request;
  const earlier = referenceTasks
    .map((each) => Task.fromJSON(each))
    .filter((each) => each.contextId === contextId);
  const { messageId } = (message ?? {}) as { messageId?: string };
  const own =
    task === undefined ? [] : Task.fromJSON(task).history.filter((each) => each.messageId !== messageId);
  const all = [...earlier.flatMap(saidIn), ...own.map(messageOf)].filter(
    ({ content }) => content.trim() !== '',
  );
  return newest(all);
}

function saidIn({ history, artifacts, status }: Task): HistoryMessage[] {
  const last = status?.message;
  const isLogged = last && history.some(({ messageId }) => messageId === last.messageId);
  const answer = artifacts.map(({ parts }) => textOf(parts)).filter((text) => text !== '');
  return [
    ...history.map(messageOf),
    { role: 'assistant', content: answer.join('\n\n') },
    ...(last && !isLogged ? [messageOf(last)] : []),
  ];
}

const messageOf = ({ role, parts }: Message): HistoryMessage => ({
  role: role === Role.ROLE_USER ? 'user' : 'assistant',
  content: textOf(parts),
});

const textOf = (parts: Message['parts']): string =>
  parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');

function newest(all: readonly HistoryMessage[]): HistoryMessage[] {
  const kept: HistoryMessage[] = [];
  let characters = 0;
  for (const message of all.slice(-MAX_MESSAGES).toReversed()) {
    characters += message.content.length;
    if (characters > MAX_CHARACTERS) break;
    kept.unshift(message);
  }
  return kept;
}
