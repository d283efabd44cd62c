import { hash } from 'node:crypto';
import { type CallContext, Message, type SendMessageRequest } from '@baton/a2a';
import type { MessageKey } from '@baton/database';

/**
 * The key that identifies a message when it comes again: a hash of everything that was sent, with its `messageId`. With an
 * `Idempotency-Key` the key is a hash of that header; the content, without the `messageId`, is kept to find out whether the
 * header was used for another message. Undefined: the message is never deduplicated, because it has no id, or because its
 * caller chooses the ids of tasks (`turnOfAlias`). The same message of another principal has another key.
 * The form of the answer (`configuration`) is not part of the key.
 */
export function messageKey(
  call: Pick<CallContext, 'agent' | 'clientTaskId' | 'idempotencyKey' | 'principal'>,
  request: SendMessageRequest,
  message: Message,
): Pick<MessageKey, 'hash' | 'earlierHash' | 'content'> | undefined {
  const { agent, clientTaskId, idempotencyKey, principal } = call;
  const hasHeader = idempotencyKey !== undefined;
  if (!hasHeader && (!message.messageId || clientTaskId !== undefined)) return undefined;
  const { messageId, ...said } = Message.toJSON(message) as { messageId?: string };
  const content = { said, id: clientTaskId, metadata: request.metadata };
  const shared = hasHeader
    ? digest(['header', agent.id, idempotencyKey])
    : digest(['message', agent.id, messageId, content]);
  return {
    hash: hash('sha256', Buffer.concat([shared, Buffer.from(principal.key)]), 'buffer'),
    // Earlier releases knew messages of all callers by this. They had no principals, and guests reach nothing of theirs.
    ...(principal.kind === 'token' && { earlierHash: shared }),
    content: hasHeader ? digest(content) : null,
  };
}

/** SHA-256 of the value's JSON, the members of every object in order. */
const digest = (value: unknown): Buffer => hash('sha256', JSON.stringify(inOrder(value)), 'buffer');

function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, inOrder(member)]));
}
