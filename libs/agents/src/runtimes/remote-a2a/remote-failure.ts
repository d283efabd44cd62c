import { A2AError, TaskNotFoundError, UnsupportedOperationError, isRestError } from '@a2a-js/sdk/errors';
import { failureReason } from '../../outbound/failure-reason.js';
import { OutboundRefused } from '../../outbound/outbound-refused.js';
import { NOTHING_SECRET, type Redactor } from '../../outbound/redactor.js';

/**
 * What became of a call: `unreached` never got to the agent; `broken` may have, the answer is missing; `gone` and
 * `unsupported` are answers about a task or a method; `final` will not change.
 */
export type FailureKind = 'unreached' | 'broken' | 'gone' | 'unsupported' | 'final';

const MAX_QUOTE = 300;
const METHOD_NOT_FOUND = -32601;
const INTERNAL_ERROR = -32603;

/** A call of a remote agent that failed. The message is meant for the caller: it names the host and the remedy. */
export class RemoteFailure extends Error {
  override readonly name = 'RemoteFailure';
  /** What it went over, as `baton_limit_exceeded_total` names it. */
  readonly limit: string | undefined;

  constructor(
    readonly kind: FailureKind,
    message: string,
    options?: ErrorOptions & { limit?: string },
  ) {
    super(message, options);
    this.limit = options?.limit;
  }

  /** Whether there is no use in telling the agent that its task is not wanted any more. */
  get isOutOfReach(): boolean {
    return this.passes || this.kind === 'gone';
  }

  /** Whether the same call may work later. */
  get passes(): boolean {
    return this.kind === 'unreached' || this.kind === 'broken';
  }
}

/** An answer that is no A2A answer but one of HTTP. */
export class HttpFailure extends Error {
  constructor(readonly status: number) {
    super(`HTTP ${status}`);
  }
}

/**
 * What an error of the SDK's client or of the way out means.
 * @param redactor takes the secrets out that were sent: what a remote agent says is shown and logged
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
    // A stream that breaks in the middle of an event looks like this too.
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

/** What went wrong, for the log: without a stack, whose first lines are the message again. */
function redacted(error: unknown, redactor: Redactor): { name: string; message: string } {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  return { name, message: redactor.text(message).slice(0, MAX_QUOTE) };
}

function answerFailure(error: A2AError, host: string, redactor: Redactor): RemoteFailure {
  const code = codeOf(error);
  const said = redactor.text(error.message);
  const quote = said.length > MAX_QUOTE ? `${said.slice(0, MAX_QUOTE)}…` : said;
  const message = `The agent at ${host} answered with an error: ${quote}`;
  // The SDK's classes are one type to the compiler, so that it must not narrow.
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

/** Whether no byte of the request has left for the agent. */
function isUnreached(error: unknown): boolean {
  const { code, cause, errors } = (error ?? {}) as { code?: string; cause?: unknown; errors?: unknown[] };
  if (UNREACHED.has(code ?? '')) return true;
  return cause === undefined ? !!errors && isUnreached(errors[0]) : isUnreached(cause);
}

const UNREACHED = new Set([
  ...['ENOTFOUND', 'EAI_AGAIN', 'ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT'],
]);

function causeOf<T extends Error>(error: unknown, type: abstract new (...args: never[]) => T): T | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof type) return cause;
  return undefined;
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
