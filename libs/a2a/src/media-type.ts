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
  return decoderFor(markOf(bytes) ?? charsetOf(mediaType) ?? 'utf-8').decode(bytes);
}

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
