import type { ModelProviderName } from '@baton/a2a';
import type { AssistantModelMessage, ModelMessage, UserModelMessage } from 'ai';

/**
 * The messages as every provider takes them. Anthropic refuses texts without a visible character and messages without
 * content. The chat templates of some open models refuse two messages of the user in a row, which a correction or a
 * question without an answer leaves: they become one.
 */
export function sendable(messages: readonly ModelMessage[], provider: ModelProviderName): ModelMessage[] {
  const sent: ModelMessage[] = [];
  for (const message of messages) {
    const last = sent.at(-1);
    if (message.role === 'assistant') {
      const kept = withoutBlanks(message, provider);
      if (kept) sent.push(kept);
    } else if (message.role === 'user' && last?.role === 'user') {
      sent[sent.length - 1] = { role: 'user', content: joined(last.content, message.content) };
    } else sent.push(message);
  }
  return sent;
}

/** Undefined if nothing remains. */
function withoutBlanks(
  message: AssistantModelMessage,
  provider: ModelProviderName,
): AssistantModelMessage | undefined {
  const { content } = message;
  if (typeof content === 'string') return isBlank(content) ? undefined : message;
  // An empty text of Gemini may hold the signature of a thought.
  const kept = content.filter(
    (part) =>
      part.type !== 'text' ||
      !isBlank(part.text) ||
      (part.providerOptions !== undefined && provider !== 'anthropic'),
  );
  return kept.length > 0 ? { ...message, content: kept } : undefined;
}

const isBlank = (text: string): boolean => text.trim() === '';

type UserContent = UserModelMessage['content'];

/** Two texts stay one text, because some servers take no list of parts. */
function joined(first: UserContent, second: UserContent): UserContent {
  const [a, b] = [textOf(first), textOf(second)];
  if (a !== undefined && b !== undefined) return `${a}\n\n${b}`;
  return [...partsOf(first), ...partsOf(second)];
}

const partsOf = (content: UserContent): Exclude<UserContent, string> =>
  typeof content === 'string' ? [{ type: 'text', text: content }] : content;

/** The text of a message that has nothing else. */
function textOf(content: UserContent): string | undefined {
  const [first, ...others] = partsOf(content);
  return first?.type === 'text' && others.length === 0 ? first.text : undefined;
}
