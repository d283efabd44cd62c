import { type Message, ProtocolError, Role, V1_0_CODEC } from '@baton/a2a';

/** Maximum size. The message is stored with its schedule or task, as long as that exists. */
const MAX_BYTES = 65_536;

/** Reads a message of A2A 1.0. Baton sets role and ids. */
export function decodeMessageBody(
  text: string | undefined,
  message: object | undefined,
): Message | undefined {
  if (text !== undefined && message) {
    throw ProtocolError.invalidParams('text', 'give either a text or a message, not both');
  }
  if (text === '') throw ProtocolError.invalidParams('text', 'is empty: write what the agent should do');
  const content = text === undefined ? message : { parts: [{ text }] };
  if (!content) return undefined;
  for (const id of ['messageId', 'taskId', 'contextId']) {
    if (id in content)
      throw ProtocolError.invalidParams(`message.${id}`, 'is made by Baton for each task: leave it out');
  }
  if (Buffer.byteLength(JSON.stringify(content)) > MAX_BYTES) {
    throw ProtocolError.invalidParams(
      text === undefined ? 'message' : 'text',
      `is larger than ${MAX_BYTES} bytes: name large content by its URL`,
    );
  }
  const whole = { role: 'ROLE_USER', ...content, messageId: 'made-by-baton' };
  const { request } = V1_0_CODEC.decode('SendMessage', { message: whole });
  const { message: decoded } = request as { message: Message };
  return { ...decoded, messageId: '', role: Role.ROLE_USER };
}
