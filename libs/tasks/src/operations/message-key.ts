import { type CallContext, Message, type SendMessageRequest } from '@baton/a2a';
import type { MessageKey } from '@baton/database';
import { createHash } from 'node:crypto';

/**
 * By what a message is known when it comes again: by everything that was sent, its `messageId` included. With
 * an `Idempotency-Key` it is known by that, and its content, where the `messageId` does not count, is kept to
 * tell whether the key is used for something else. Undefined: a message without an id is never the same again,
 * and where callers choose the ids of tasks, those say what is (`turnOfAlias`).
 * How the caller wants to be answered (`configuration`) is no part of it.
 */
export function messageKey(
  { agent, clientTaskId, idempotencyKey }: Pick<CallContext, 'agent' | 'clientTaskId' | 'idempotencyKey'>,
  request: SendMessageRequest,
  message: Message,
): Pick<MessageKey, 'hash' | 'content'> | undefined {
  const hasHeader = idempotencyKey !== undefined;
  if (!hasHeader && (!message.messageId || clientTaskId !== undefined)) return undefined;
  const { messageId, ...said } = Message.toJSON(message) as { messageId?: string };
  const content = { said, id: clientTaskId, metadata: request.metadata };
  return hasHeader
    ? { hash: digest(['header', agent.id, idempotencyKey]), content: digest(content) }
    : { hash: digest(['message', agent.id, messageId, content]), content: null };
}

/** SHA-256 of the value's JSON, the members of every object in order. */
const digest = (value: unknown): Buffer =>
  createHash('sha256')
    .update(JSON.stringify(inOrder(value)))
    .digest();

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, inOrder(member)]));
}
