import { A2AError, TaskNotFoundError, UnsupportedOperationError, isRestError } from '@a2a-js/sdk/errors';
import { failureReason, OutboundRefused } from '@baton/outbound';
import { NOTHING_SECRET, type Redactor } from '../../outbound/redactor.js';

/**
 * The kind of failure. `unreached`: the call did not reach the agent. `broken`: it may have, but there is no answer.
 * `gone`: the agent does not know the task. `unsupported`: it does not know the method. `final`: a retry fails too.
 */
export type FailureKind = 'unreached' | 'broken' | 'gone' | 'unsupported' | 'final';

const MAX_QUOTE = 300;
const METHOD_NOT_FOUND = -32601;
const INTERNAL_ERROR = -32603;

/** A failed call of a remote agent. The message is for the caller: it names the host and the remedy. */
export class RemoteFailure extends Error {
  override readonly name = 'RemoteFailure';
  /** The exceeded limit, as a label of `baton_limit_exceeded_total`. */
  readonly limit: string | undefined;

  constructor(
    readonly kind: FailureKind,
    message: string,
    options?: ErrorOptions & { limit?: string },
  ) {
    super(message, options);
    this.limit = options?.limit;
  }

  /** Whether a cancel of the remote task is useless. */
  get isOutOfReach(): boolean {
    return this.isTransient || this.kind === 'gone';
  }

  /** Whether the same call may succeed later. */
  get isTransient(): boolean {
    return this.kind === 'unreached' || this.kind === 'broken';
  }
}

/** An HTTP error without an A2A answer. */
export class HttpFailure extends Error {
  constructor(readonly status: number) {
    super(`HTTP ${status}`);
  }
}

/**
 * Translates an error of the SDK's client or of the outbound guard.
 * @param redactor removes secrets: texts of the remote agent are shown and logged
 */
export function remoteFailure(error: unknown, host: string, redactor = NOTHING_SECRET): RemoteFailure {
  if (error instanceof RemoteFailure) return error;
  const http = causeOf(error, HttpFailure);
  if (http) return httpFailure(http.status, host);
  const refused = causeOf(error, OutboundRefused);
  if (refused) return new RemoteFailure('final', capital(refused.message));
  const answer = causeOf(error, A2AError);
  if (answer) return answerFailure(answer, host, redactor);
  const reason = failureReason(error);
  const options = { cause: redacted(error, redactor) };
  if (reason === undefined) {
    // A stream that breaks inside an event gives the same error.
    return new RemoteFailure('broken', `The agent at ${host} gave an answer that is not A2A`, options);
  }
  return new RemoteFailure(isUnreached(error) ? 'unreached' : 'broken', unreachable(host, reason), options);
}

const unreachable = (host: string, reason: string): string =>
  `The agent at ${host} could not be reached: ${reason}`;

function httpFailure(status: number, host: string): RemoteFailure {
  const answered = `The agent at ${host} answered with HTTP ${status}`;
  if (status === 401 || status === 403 || status === 407)
    return new RemoteFailure('final', `${answered}: check the headers and secrets in this agent's settings`);
  if (status === 429 || status === 503)
    return new RemoteFailure('unreached', `${answered}: it is overloaded`);
  if (status === 408 || status >= 500) return new RemoteFailure('broken', answered);
  if (status === 404)
    return new RemoteFailure('final', `${answered}: check the URL in this agent's settings`);
  return new RemoteFailure('final', answered);
}

/** The cause for the log. It has no stack, because a stack repeats the message with its secrets. */
function redacted(error: unknown, redactor: Redactor): { name: string; message: string } {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  return { name, message: redactor.text(message).slice(0, MAX_QUOTE) };
}

function answerFailure(error: A2AError, host: string, redactor: Redactor): RemoteFailure {
  const code = codeOf(error);
  const said = redactor.text(error.message);
  const quote = said.length > MAX_QUOTE ? `${said.slice(0, MAX_QUOTE)}…` : said;
  const message = `The agent at ${host} answered with an error: ${quote}`;
  // `unknown`, because the SDK's error classes have the same shape and the compiler would narrow wrongly.
  const kind: unknown = error;
  if (kind instanceof TaskNotFoundError) return new RemoteFailure('gone', message);
  if (kind instanceof UnsupportedOperationError || code === METHOD_NOT_FOUND)
    return new RemoteFailure('unsupported', message);
  const isInternal = code === INTERNAL_ERROR || (isRestError(error) && error.statusCode >= 500);
  return new RemoteFailure(isInternal ? 'broken' : 'final', message);
}

function codeOf(error: A2AError): number | undefined {
  const { envelopeCode, code } = error as { envelopeCode?: unknown; code?: unknown };
  return [envelopeCode, code].find((value) => typeof value === 'number');
}

/** Whether the request was certainly not sent. */
function isUnreached(error: unknown): boolean {
  const { code, cause, errors } = (error ?? {}) as { code?: string; cause?: unknown; errors?: unknown[] };
  if (UNREACHED.has(code ?? '')) return true;
  return cause === undefined ? !!errors && isUnreached(errors[0]) : isUnreached(cause);
}

const UNREACHED = new Set([
  'ENOTFOUND',
  'EAI_AGAIN',
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
  'ERR_OUTBOUND_PROXY',
]);

function causeOf<T extends Error>(error: unknown, type: abstract new (...args: never[]) => T): T | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof type) return cause;
  return undefined;
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
