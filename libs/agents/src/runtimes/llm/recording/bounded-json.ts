import type { Redactor } from '../../../outbound/redactor.js';

/** Maximum characters of one text inside of a message or tool. */
const MAX_TEXT = 32 * 1024;
/** Maximum bytes of each section of a record: instructions, messages, tools, parameters, answer. */
export const MAX_SECTION_BYTES = 128 * 1024;

const mark = (characters: number): string => `… (${characters} more characters are not recorded)`;

export const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value ?? null));

/**
 * A text without secrets. The end of a cut text may be the beginning of a secret: it is left out.
 * @param max in characters
 */
export function cleanText(text: string, redactor: Redactor, max = MAX_TEXT): string {
  if (text.length <= max) return redactor.text(text);
  return redactor.split(text.slice(0, max)).ready + mark(text.length - max);
}

/** A text without secrets that takes at most `MAX_SECTION_BYTES` as JSON, and its mark. */
export function cleanSection(text: string, redactor: Redactor): string {
  let max = MAX_SECTION_BYTES;
  // Without its quotes.
  while (max > 0 && bytesOf(text.slice(0, max)) - 2 > MAX_SECTION_BYTES) max = Math.floor(max / 2);
  return cleanText(text, redactor, max);
}

/** A copy of a value as JSON has it, without secrets. Long texts are cut, and files are only named by their size. */
export function cleanValue(value: unknown, redactor: Redactor): unknown {
  if (typeof value === 'string') return cleanText(value, redactor);
  if (value instanceof Uint8Array) return `(${value.byteLength} bytes are not recorded)`;
  if (value instanceof URL) return cleanText(value.href, redactor);
  if (Array.isArray(value)) return value.map((each) => cleanValue(each, redactor));
  if (typeof value !== 'object' || value === null) return value;
  const isFile = 'mediaType' in value && 'data' in value && typeof value.data === 'string';
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      cleanText(key, redactor),
      isFile && key === 'data' ? fileNote(each as string) : cleanValue(each, redactor),
    ]),
  );
}

/** The data of a file are Base64, or a URL. */
const fileNote = (data: string): string =>
  /^https?:/.test(data)
    ? `(a file at a URL of ${data.length} characters is not recorded)`
    : `(a file of ${Buffer.byteLength(data, 'base64')} bytes is not recorded)`;

/**
 * The first items that fit into a section.
 * @returns `left`: how many are left out
 */
export function fitting<T>(items: readonly T[]): { kept: T[]; left: number } {
  let room = MAX_SECTION_BYTES;
  const end = items.findIndex((item) => (room -= bytesOf(item) + 1) < 0);
  const kept = end < 0 ? [...items] : items.slice(0, end);
  return { kept, left: items.length - kept.length };
}
