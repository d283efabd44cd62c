import { isUtf8 } from 'node:buffer';
import type { IncomingMessage } from 'node:http';
import { EnvelopeError, ProtocolError } from '@baton/a2a';
import { type BodyLimit, readBody } from './read-body.js';

const MEDIA_TYPES: readonly string[] = ['application/json', 'application/a2a+json'];
const CHARSETS: ReadonlySet<string> = new Set(['utf-8', 'utf8', 'us-ascii']);

/**
 * The text of a request whose body is JSON. Throws `media-type` if it does not claim to be JSON in UTF-8, `too-large`
 * or `request-timeout` beyond `limit`, `parse` if it is not UTF-8 after all, and CallerLeft if it never ends.
 */
export async function readJsonText(
  request: IncomingMessage,
  limit: BodyLimit,
  mediaTypes = MEDIA_TYPES,
): Promise<string> {
  assertMediaType(request, mediaTypes);
  const body = await readBody(request, limit);
  if (!isUtf8(body)) throw new EnvelopeError('parse', 'the body is not UTF-8', null);
  return body.toString('utf8');
}

function assertMediaType({ headers }: IncomingMessage, mediaTypes: readonly string[]): void {
  const encoding = headers['content-encoding'] ?? 'identity';
  if (encoding !== 'identity') throw refuse(`Content-Encoding ${encoding}`, 'send the body uncompressed');
  const contentType = headers['content-type'];
  if (contentType === undefined) {
    if (hasNoBody(headers)) return;
    throw refuse('a body without Content-Type', 'send application/json');
  }
  const [type = '', ...parameters] = contentType.split(';').map((part) => part.trim().toLowerCase());
  if (!mediaTypes.includes(type)) {
    throw refuse(`Content-Type ${type.slice(0, 100)}`, 'send application/json');
  }
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice('charset='.length);
  if (charset !== undefined && !CHARSETS.has(charset.replaceAll('"', ''))) {
    throw refuse(`charset ${charset.slice(0, 100)}`, 'send UTF-8');
  }
}

/** Leaving out the type of nothing is no mistake; the envelope then says that the body is missing. */
const hasNoBody = (headers: IncomingMessage['headers']): boolean =>
  headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;

const refuse = (what: string, remedy: string): ProtocolError =>
  new ProtocolError('media-type', `${what} is not supported: ${remedy}`);
