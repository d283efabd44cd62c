import type { Message, Part } from '@baton/a2a';
import { textPart } from '../../reply.js';

/**
 * The parts that each chunk of an echo carries: those of the message, their text cut or repeated to
 * `chunkBytes` if that is given (several text parts then become one).
 */
export function echoParts(message: Message, chunkBytes: number | undefined): Part[] {
  if (chunkBytes === undefined) return message.parts;
  const texts = message.parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : []));
  if (texts.length === 0) return message.parts;
  const others = message.parts.filter(({ content }) => content?.$case !== 'text');
  return [textPart(textOfBytes(texts.join(''), chunkBytes)), ...others];
}

/**
 * The text cut or repeated to as many bytes of UTF-8 as fit into `bytes` without cutting a character: at most
 * 3 bytes less. An empty text stays empty.
 */
export function textOfBytes(text: string, bytes: number): string {
  // Two halves of a surrogate pair may meet where the text is repeated: its length alone would say too much.
  const period = Buffer.byteLength(text + text) - Buffer.byteLength(text);
  if (period === 0) return '';
  const repeated = text.repeat(Math.ceil(bytes / period));
  const { read } = new TextEncoder().encodeInto(repeated, new Uint8Array(bytes));
  return repeated.slice(0, read);
}

/** Rough size of parts on the wire, in bytes. */
export function sizeOf(parts: readonly Part[]): number {
  return parts.reduce((sum, { content }) => {
    if (content?.$case === 'raw') return sum + content.value.length;
    if (content?.$case === 'data') return sum + JSON.stringify(content.value ?? null).length;
    return sum + Buffer.byteLength(content?.value ?? '');
  }, 0);
}
