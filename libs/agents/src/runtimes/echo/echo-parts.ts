import type { Message, Part } from '@baton/a2a';
import { plainTextPart } from '../../agent-runtime.js';

/**
 * The parts of each chunk: those of the message. With `chunkBytes` all text parts become one, cut or repeated to that
 * size.
 */
export function echoParts(message: Message, chunkBytes: number | undefined): Part[] {
  if (chunkBytes === undefined) return message.parts;
  const texts = message.parts.flatMap(({ content }) => (content?.$case === 'text' ? [content.value] : []));
  if (texts.length === 0) return message.parts;
  const others = message.parts.filter(({ content }) => content?.$case !== 'text');
  return [plainTextPart(textOfBytes(texts.join(''), chunkBytes)), ...others];
}

/**
 * Cuts or repeats a text to `bytes` bytes of UTF-8 without splitting a character. The result may be up to 3 bytes
 * shorter. An empty text stays empty.
 */
export function textOfBytes(text: string, bytes: number): string {
  // A repetition may join two halves of a surrogate pair, so the length of one text would be too large.
  const period = Buffer.byteLength(text + text) - Buffer.byteLength(text);
  if (period === 0) return '';
  const repeated = text.repeat(Math.ceil(bytes / period));
  const { read } = new TextEncoder().encodeInto(repeated, new Uint8Array(bytes));
  return repeated.slice(0, read);
}
