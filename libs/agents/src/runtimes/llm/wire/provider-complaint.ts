import { isJsonObject, type JsonObject, parseBoundedJson } from '@baton/a2a';
import { clock } from '@baton/telemetry';
import { isWebPage } from '../../../outbound/web-page.js';
import { numberOf, objectOf, objectsOf, textOf } from './json.js';

/** Maximum bytes of a provider's error that are read. */
export const MAX_ERROR_BODY = 65_536;

/** Characters of its message that are kept. */
const MAX_MESSAGE = 2_000;

/** A provider's report of a failure: with an HTTP status, or as an event of its answer. */
export interface Complaint {
  /** HTTP status. For an event, the one that its code or type stands for. */
  status: number;
  /** The provider's own words, if there are any. Not redacted. */
  message?: string;
  code?: string;
  type?: string;
  /** The wait that the provider asks for, in ms. */
  retryAfterMs?: number;
  /** The provider's own word on whether a retry may help. */
  shouldRetry?: boolean;
  /**
   * What came in place of a stream of events: a web page, or a document that is no answer of a model.
   */
  document?: 'page' | 'json' | 'text';
}

/**
 * The complaint of a response with an error status, or with a document instead of a stream.
 * @param body the beginning of its body
 */
export function complaintOf(status: number, headers: Headers, body: string): Complaint {
  // The outbound guard bounds its depth, MAX_ERROR_BODY its size.
  const value = parseBoundedJson(body);
  const json = typeof value === 'object' ? value : undefined;
  const words = json === undefined ? {} : wordsOf(json);
  const isOk = status < 400;
  const document =
    json === undefined ? (isWebPage(body, headers.get('content-type') ?? '') ? 'page' : 'text') : 'json';
  const text = document === 'text' && body.trim() !== '' ? { message: cut(body) } : {};
  const retryAfterMs = retryAfter(headers) ?? words.retryAfterMs;
  const shouldRetry = headers.get('x-should-retry');
  return {
    ...text,
    ...words,
    status: isOk && words.message !== undefined ? statusOf(words, 400) : status,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(shouldRetry !== null && { shouldRetry: shouldRetry === 'true' }),
    ...((isOk || document === 'page') && { document }),
  };
}

/**
 * The complaint of an event.
 * @param name the name of the event
 * @returns undefined if the event is no error
 */
export function complaintOfEvent(event: JsonObject, name: string | undefined): Complaint | undefined {
  const isError =
    name === 'error' ||
    event.type === 'error' ||
    event.type === 'response.failed' ||
    event.type === 'response.cancelled' ||
    event.object === 'error' ||
    isJsonObject(event.error) ||
    (typeof event.error === 'string' && event.error !== '') ||
    (event.detail !== undefined && event.choices === undefined && event.type === undefined);
  if (!isError) return undefined;
  const isCanceled = event.type === 'response.cancelled';
  const words = { ...(isCanceled && { message: 'It canceled the response.' }), ...wordsOf(event) };
  return { ...words, status: statusOf(words, 500) };
}

type ComplaintText = Omit<Complaint, 'status'>;

/**
 * Finds the message in a provider's error: `{error: {message, code, type}}`, `{error: text}`, `{detail}`, `{message}`, a
 * list of these, and the error of a response of OpenAI.
 */
function wordsOf(value: unknown): ComplaintText {
  const first: unknown = Array.isArray(value) ? value[0] : value;
  const outer = objectOf(first);
  const inner = outer.error ?? objectOf(outer.response).error ?? objectsOf(outer.errors)[0] ?? first;
  const error = objectOf(inner);
  const message = textOf(inner) ?? messageOf(error) ?? messageOf(outer);
  // OpenRouter puts the words of the provider behind it here.
  const behind = objectOf(error.metadata).raw;
  const raw = textOf(behind) ?? (isJsonObject(behind) ? JSON.stringify(behind) : undefined);
  const words = [message, raw].filter((text) => text !== undefined && text.trim() !== '').join(': ');
  const code = codeOf(error.code) ?? codeOf(outer.code);
  const type = namedType(error) ?? namedType(outer);
  const details = objectsOf(error.details);
  const retryAfterMs = retryInfo(details);
  const perDay = details.some((detail) => JSON.stringify(detail.violations ?? null).includes('PerDay'));
  return {
    ...(words !== '' && { message: cut(words) }),
    ...(code !== undefined && { code }),
    ...(type !== undefined && { type }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    // A quota of a day is not there again before the next one.
    ...(perDay && { shouldRetry: false }),
  };
}

function messageOf({ message, detail, msg, error }: JsonObject): string | undefined {
  const found = textOf(message) ?? textOf(detail) ?? textOf(msg) ?? textOf(error);
  if (found !== undefined) return found;
  // FastAPI: a list of fields, each with its fault.
  const fields = objectsOf(detail).map(
    ({ loc, msg: wrong }) => `${Array.isArray(loc) ? loc.join('.') : ''} ${String(wrong)}`,
  );
  const { message: within, text } = objectOf(message);
  return fields.length > 0 ? fields.join('; ').trim() : (textOf(within) ?? textOf(text));
}

const codeOf = (code: unknown): string | undefined =>
  typeof code === 'string' || typeof code === 'number' ? String(code).slice(0, 100) : undefined;

/** `type`, or `status` as Google calls it. The type of the event itself has no meaning. */
function namedType({ type, status }: JsonObject): string | undefined {
  const name = textOf(type);
  const isOwn = name !== undefined && name !== 'error' && !name.startsWith('response.');
  return (isOwn ? name : textOf(status))?.slice(0, 100);
}

/** Status that the code or the type of an error stands for. The more special come first. */
const STATUS_OF: readonly [RegExp, number][] = [
  [/quota|rate_?limit|too_many|resource_exhausted|throttl/i, 429],
  [/overload/i, 529],
  [/auth|invalid_api_key|unauthorized/i, 401],
  [/permission|forbidden/i, 403],
  [/billing|payment|insufficient_(balance|credit)/i, 402],
  [/not_?found|does_not_exist/i, 404],
  [/too_large/i, 413],
  [
    /invalid|bad_?request|context_length|failed_precondition|unsupported|not_supported|content_(policy|filter)|validation/i,
    400,
  ],
  [/timeout|deadline/i, 504],
  [/unavailable/i, 503],
];

/** @param other the status of an error whose code and type are unknown */
function statusOf({ code = '', type = '', message = '' }: ComplaintText, other: number): number {
  const number = Number(code);
  if (number >= 400 && number <= 599) return number;
  const names = `${code} ${type}`;
  const found = STATUS_OF.find(([pattern]) => pattern.test(names));
  if (found) return found[1];
  return other === 400 && /endpoint|not found/i.test(message) ? 404 : other;
}

/** `Retry-After` (RFC 9110, section 10.2.3), or the header in milliseconds that some providers send. */
function retryAfter(headers: Headers): number | undefined {
  const ms = headers.get('retry-after-ms');
  if (ms !== null && Number(ms) >= 0) return Number(ms);
  const text = headers.get('retry-after');
  if (text === null) return undefined;
  const seconds = Number(text);
  const at = Number.isNaN(seconds) ? Date.parse(text) - clock.now() : seconds * 1000;
  return Number.isNaN(at) ? undefined : Math.max(0, at);
}

/** The delay in Google's details: `{"@type": "…/google.rpc.RetryInfo", "retryDelay": "34.07s"}`. */
function retryInfo(details: readonly JsonObject[]): number | undefined {
  const delays = details.map(
    ({ retryDelay }) => /^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(textOf(retryDelay) ?? '')?.[1],
  );
  const seconds = delays.find((delay) => delay !== undefined);
  return numberOf(seconds === undefined ? undefined : Number(seconds) * 1000);
}

const cut = (text: string): string => text.replace(/\s+/g, ' ').trim().slice(0, MAX_MESSAGE);
