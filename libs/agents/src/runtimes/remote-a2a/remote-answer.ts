import { essenceOf, isEventStream, isJsonType, parseBoundedJson } from '@baton/a2a';
import { beginningOf } from '../../outbound/beginning-of.js';
import { isWebPage, titleOf } from '../../outbound/web-page.js';
import { completeLegacy, completeLegacyEvents } from './complete-legacy.js';
import { UnfitAnswer } from './unfit-answer.js';

/** Statuses that a proxy or gateway before the agent may answer with. Their body is not an A2A answer. */
const NOT_OF_THE_AGENT = new Set([401, 403, 407, 408, 413, 429, 502, 503, 504]);

/** Limits for reading an answer that is not A2A, in bytes and in ms. */
const MAX_READ_BYTES = 16 * 1024;
/** Maximum length in an error, in characters. */
const MAX_SAID = 200;

const EVENT_STREAM = 'text/event-stream';

/** The request that was answered. */
interface AnsweredRequest {
  url: string;
  /** Whether its caller takes a stream of events. */
  wantsStream: boolean;
  /** Whether it is one of A2A 0.3. */
  isLegacy: boolean;
}

/**
 * An answer for the SDK's client. Some servers answer a streaming call with the plain result: it then comes as a stream of one
 * event, in which the client finds it.
 * @throws UnfitAnswer for an answer that is not A2A
 */
export async function toA2aAnswer(response: Response, asked: AnsweredRequest): Promise<Response> {
  const mediaType = mediaTypeOf(response);
  if (response.ok) {
    if (asked.wantsStream) {
      const { body } = response;
      if (isEventStream(mediaType))
        return streamOf(body && asked.isLegacy ? completeLegacyEvents(body) : body, response);
      if (isJsonType(mediaType)) return eventOf(await textOf(response, asked), response);
      throw await unfit(response, asked);
    }
    // Servers of static files use any media type for a card.
    if (isJsonType(mediaType) || !NOT_JSON.test(mediaType))
      return copyOf(response, await textOf(response, asked));
    throw await unfit(response, asked);
  }
  if (!isJsonType(mediaType) || NOT_OF_THE_AGENT.has(response.status)) throw await unfit(response, asked);
  const text = await response.text();
  if (!isA2aError(text)) throw unfitText(response, asked, text);
  return copyOf(response, text);
}

const textOf = async (response: Response, { isLegacy }: AnsweredRequest): Promise<string> => {
  const text = completeError(await response.text());
  return isLegacy ? completeLegacy(text) : text;
};

/** JSON-RPC: the server has failed, and does not say how. */
const INTERNAL_ERROR = -32603;

/** Completes a JSON-RPC answer whose error is only a text or has no code, so that the SDK's client reads its message. */
function completeError(text: string): string {
  const json = (parseBoundedJson(text) ?? {}) as {
    jsonrpc?: unknown;
    error?: { code?: unknown } | string | null;
  };
  const { jsonrpc, error } = json;
  if (jsonrpc === undefined || error === undefined || error === null || isA2aError(text)) return text;
  const code = typeof error === 'object' && Number.isInteger(error.code) ? error.code : INTERNAL_ERROR;
  return JSON.stringify({ ...json, error: { code, message: messageIn({ error }) ?? 'It gave no reason' } });
}

/** Media types that are certainly no JSON. */
const NOT_JSON =
  /^(text\/(html|event-stream)|application\/(x-ndjson|xhtml\+xml|xml)|image\/.*|audio\/.*|video\/.*)$/;

const mediaTypeOf = ({ headers }: Response): string => essenceOf(headers.get('content-type'));

/** A JSON text as a stream of one event. An error stays as it is: the client reads it before any event. */
function eventOf(text: string, response: Response): Response {
  const json = parseBoundedJson(text);
  if (typeof json !== 'object' || json === null || 'error' in json) return copyOf(response, text);
  return streamOf(`data: ${JSON.stringify(json)}\n\n`, response);
}

/** The client of the SDK accepts the media type only in lower case. */
const streamOf = (body: Response['body'] | string, { status }: Response): Response =>
  new Response(body, { status, headers: { 'content-type': EVENT_STREAM } });

function copyOf({ status, headers }: Response, text: string): Response {
  const kept = new Headers(headers);
  // The text is decoded.
  for (const name of ['content-length', 'content-encoding']) kept.delete(name);
  // An answer such as 204 has no body, not even an empty one.
  return new Response(text === '' ? null : text, { status, headers: kept });
}

/** Whether it is a JSON-RPC error, or of HTTP+JSON (A2A 1.0 §11.6). Frameworks answer a wrong path with other JSON. */
function isA2aError(text: string): boolean {
  const { error } = (parseBoundedJson(text) ?? {}) as { error?: unknown };
  if (typeof error !== 'object' || error === null) return false;
  const { code, message } = error as { code?: unknown; message?: unknown };
  return Number.isInteger(code) && typeof message === 'string';
}

async function unfit(response: Response, asked: AnsweredRequest): Promise<UnfitAnswer> {
  const beginning = await beginningOf(response, MAX_READ_BYTES);
  return unfitText(response, asked, beginning.toString('utf8'));
}

const unfitText = (response: Response, { url, wantsStream }: AnsweredRequest, text: string): UnfitAnswer => {
  const mediaType = mediaTypeOf(response);
  return new UnfitAnswer(
    response.status,
    mediaType,
    new URL(url).pathname,
    gistOf(mediaType, text),
    wantsStream,
  );
};

/** Summary of an answer for a person: the title of a page, the message of an error, or the beginning of a text. */
function gistOf(mediaType: string, text: string): string {
  const message = isJsonType(mediaType) ? messageIn(parseBoundedJson(text)) : undefined;
  const title = isWebPage(text, mediaType) ? titleOf(text) : undefined;
  // oxlint-disable-next-line no-control-regex -- they would change the output of a terminal
  const line = (message ?? title ?? text).replace(/[\s\u0000-\u001f\u007f-\u009f]+/g, ' ').trim();
  return line.length > MAX_SAID ? `${line.slice(0, MAX_SAID)}…` : line;
}

/** The message of an error as frameworks write it: `{error: {message}}`, `{error}`, `{message}`, `{detail}`. */
function messageIn(json: unknown): string | undefined {
  if (typeof json !== 'object' || json === null) return undefined;
  const { error, message, detail } = json as { error?: unknown; message?: unknown; detail?: unknown };
  return [message, detail, error].find((value) => typeof value === 'string') ?? messageIn(error);
}
