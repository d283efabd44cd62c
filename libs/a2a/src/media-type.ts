import { TextDecoder } from 'node:util';

/**
 * Media types as RFC 9110 §8.3.1 writes them: `type/subtype`, in capitals or not, with parameters after semicolons. Tenants, models
 * and other servers write them, so nothing here rejects one.
 */

/** A media type without its parameters, in lower case: `image/png` of `IMAGE/PNG; q=1`. Empty if there is none. */
export const essenceOf = (mediaType: string | null | undefined): string =>
  (mediaType?.split(';', 1)[0] ?? '').trim().toLowerCase();

/** Whether a media type is this one, which is in lower case and without parameters. */
export const isMediaType = (mediaType: string | null | undefined, essence: string): boolean =>
  essenceOf(mediaType) === essence;

/** Whether a body of this type is a stream of server-sent events. */
export const isEventStream = (mediaType: string | null | undefined): boolean =>
  isMediaType(mediaType, 'text/event-stream');

/** Whether a body of this type is JSON: `application/json`, `application/problem+json` and the like. */
export const isJsonType = (mediaType: string | null | undefined): boolean =>
  /[/+]json$/.test(essenceOf(mediaType));

/** Maximum characters in which parameters are looked for. */
const MAX_LENGTH = 1_000;

/** The parameter `charset` of a media type, in lower case and without quotes; undefined if there is none. */
export function charsetOf(mediaType: string | null | undefined): string | undefined {
  const parameters = (mediaType ?? '').slice(0, MAX_LENGTH).split(';').slice(1);
  for (const parameter of parameters) {
    const [name = '', value = ''] = parameter.split('=', 2);
    if (name.trim().toLowerCase() !== 'charset') continue;
    const charset = value
      .trim()
      .replace(/^"(.*)"$/, '$1')
      .trim()
      .toLowerCase();
    return charset === '' ? undefined : charset;
  }
  return undefined;
}

/**
 * Decodes text in the charset of its media type. Without a charset, or with an unknown one, it is UTF-8. A byte order mark decides
 * before the charset does (WHATWG Encoding §6.1). Bytes that the charset does not have become U+FFFD.
 */
export function decodeText(bytes: Uint8Array, mediaType: string | null | undefined): string {
  const decoder = decoderFor(markOf(bytes) ?? charsetOf(mediaType) ?? 'utf-8');
  const text = decoder.decode(bytes);
  // Node.js before 24 decodes these bytes as ISO-8859-1, whose characters there are controls.
  return decoder.encoding === 'windows-1252'
    ? text.replace(/[\x80-\x9f]/g, (control) => WINDOWS_1252[control.charCodeAt(0) - 0x80] ?? control)
    : text;
}

/** The characters of windows-1252 from 0x80 to 0x9F (WHATWG Encoding §9). */
const WINDOWS_1252 =
  '\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f' +
  '\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178';

function decoderFor(charset: string): TextDecoder {
  try {
    return new TextDecoder(charset);
  } catch {
    return new TextDecoder();
  }
}

/** The charset of the byte order mark at the start of a text. */
function markOf([first, second, third]: Uint8Array): string | undefined {
  if (first === 0xef && second === 0xbb && third === 0xbf) return 'utf-8';
  if (first === 0xfe && second === 0xff) return 'utf-16be';
  return first === 0xff && second === 0xfe ? 'utf-16le' : undefined;
}
