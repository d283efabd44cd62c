import { A2AError, TaskNotFoundError, UnsupportedOperationError, isRestError } from '@a2a-js/sdk/errors';
import { failureReason, OutboundRefused } from '@baton/outbound';
import { NOTHING_SECRET, type Redactor } from '../../outbound/redactor.js';
import { SignInNeeded } from '../../sign-in-needed.js';
import { UnfitAnswer } from './unfit-answer.js';

/**
 * The kind of failure.
 * - `unreached`: the call did not reach the agent.
 * - `broken`: it may have, but there is no answer.
 * - `failing`: the agent has answered that it failed inside.
 * - `odd`: its answer is not A2A.
 * - `gone`: the task is unknown there.
 * - `unsupported`: it does not have the method.
 * - `final`: a retry fails too.
 */
export type FailureKind = 'unreached' | 'broken' | 'failing' | 'odd' | 'gone' | 'unsupported' | 'final';

/** Characters of a remote agent's own words. The status of the task, which lists show, has them. */
const MAX_QUOTE = 300;
/** JSON-RPC: the agent does not have the method. */
const METHOD_NOT_FOUND = -32601;
/** JSON-RPC: the agent has failed, and does not say how. */
const INTERNAL_ERROR = -32603;

/** A failed call of a remote agent. The message is for the caller: it names the host and the remedy. */
export class RemoteFailure extends Error {
  override readonly name = 'RemoteFailure';
  /** The exceeded limit, as a label of `baton_limit_exceeded_total`. */
  readonly limit: string | undefined;
  /** Who must sign in. */
  readonly signIn: SignInNeeded | undefined;

  constructor(
    readonly kind: FailureKind,
    message: string,
    options?: ErrorOptions & { limit?: string; signIn?: SignInNeeded },
  ) {
    super(message, options);
    this.limit = options?.limit;
    this.signIn = options?.signIn;
  }

  /** Whether a cancel of the remote task is useless. */
  get isOutOfReach(): boolean {
    return this.isUnanswered || this.kind === 'gone';
  }

  /** Whether the call had no answer. A message may be sent again only then: an agent that has answered has the message. */
  get isUnanswered(): boolean {
    return this.kind === 'unreached' || this.kind === 'broken';
  }

  /** Whether it may succeed later to read the task. */
  get mayPass(): boolean {
    return this.isUnanswered || this.kind === 'failing' || this.kind === 'odd';
  }
}

/**
 * Translates an error of the SDK's client or of the outbound guard.
 * @param redactor removes secrets: texts of the remote agent are shown and logged
 */
export function remoteFailure(error: unknown, host: string, redactor = NOTHING_SECRET): RemoteFailure {
  if (error instanceof RemoteFailure) return error;
  const unfit = causeOf(error, UnfitAnswer);
  if (unfit) return unfitFailure(unfit, host, redactor);
  const refused = causeOf(error, OutboundRefused);
  if (refused) return new RemoteFailure('final', capital(refused.message));
  const signIn = causeOf(error, SignInNeeded);
  if (signIn) return new RemoteFailure('final', `The agent cannot be called: ${signIn.message}`, { signIn });
  const answer = causeOf(error, A2AError);
  if (answer) return answerFailure(answer, host, redactor);
  const reason = failureReason(error);
  const options = { cause: redacted(error, redactor) };
  if (reason === undefined) {
    // The SDK's client does not understand the answer, or a stream has ended inside an event.
    const what = `The agent at ${host} gave an answer that is not A2A${detailOf(error, redactor)}`;
    return new RemoteFailure('odd', what, options);
  }
  return new RemoteFailure(isUnreached(error) ? 'unreached' : 'broken', unreachable(host, reason), options);
}

const unreachable = (host: string, reason: string): string =>
  `The agent at ${host} could not be reached: ${reason}`;

/** The remedy for an HTTP status. */
const REMEDIES: Record<number, string> = {
  400: 'it does not understand the request: check the URL, and set version and binding of this agent to what it supports',
  401: "check the headers and secrets in this agent's settings",
  403: "check the headers and secrets in this agent's settings, and what they may do at the agent",
  404: "check the URL in this agent's settings, and the url of the interface in the agent's card",
  405: "it takes no such calls there: check the url of the interface in the agent's card",
  407: "check the headers and secrets in this agent's settings",
  413: 'the message is too large for it: send a smaller one',
  415: "it takes no JSON there: check the url of the interface in the agent's card",
  429: 'it takes no more calls for now: send fewer, or ask its operator for more',
  503: 'it is overloaded or not started',
};

function unfitFailure(answer: UnfitAnswer, host: string, redactor: Redactor): RemoteFailure {
  const { status, path } = answer;
  const quote = answer.excerpt === '' ? '' : `"${quoted(answer.excerpt, redactor)}"`;
  const options = { cause: redacted(answer, redactor) };
  if (status < 300) {
    const what = `The agent at ${host} answered at ${path} with ${typeAndRemedy(answer, quote && ` (${quote})`)}`;
    return new RemoteFailure('odd', what, options);
  }
  const remedy = REMEDIES[status];
  const text = `The agent at ${host} answered with HTTP ${status}${remedy ? `: ${remedy}` : ''}`;
  const where = quote === '' ? `The path was ${path}` : `At ${path} it said ${quote}`;
  return new RemoteFailure(kindOfStatus(status), `${text}. ${where}`, options);
}

function kindOfStatus(status: number): FailureKind {
  if (status === 429 || status === 503) return 'unreached';
  // A gateway has given up on the agent: it is unknown whether the agent has received the message.
  if (status === 408 || status === 502 || status === 504) return 'broken';
  return status >= 500 ? 'failing' : 'final';
}

/** Explains an answer of an unexpected media type: kind, content and remedy. */
function typeAndRemedy({ mediaType, wantedStream }: UnfitAnswer, quote: string): string {
  if (mediaType === 'text/html')
    return `a web page${quote}: check the URL, and add headers if the agent is behind a sign-in`;
  const expected = wantedStream ? 'text/event-stream' : 'JSON';
  const got = mediaType === '' ? 'no media type' : mediaType;
  return `${got} instead of ${expected}${quote}: correct its server, or choose another interface with version and binding`;
}

/** Errors of the SDK's client about an answer. Other errors are internal to the client: `Cannot read properties of …`. */
function detailOf(error: unknown, redactor: Redactor): string {
  const isOfClient = error instanceof Error && (error.name === 'Error' || error.name === 'SyntaxError');
  return isOfClient ? `: ${quoted(error.message.replace(/\.$/, ''), redactor)}` : '';
}

/** A text of the remote agent, as it may be shown. */
function quoted(text: string, redactor: Redactor): string {
  const clean = redactor.text(text);
  return clean.length > MAX_QUOTE ? `${clean.slice(0, MAX_QUOTE)}…` : clean;
}

/** The cause for the log. It has no stack, because a stack repeats the message with its secrets. */
function redacted(error: unknown, redactor: Redactor): { name: string; message: string } {
  const { name, message } = error instanceof Error ? error : new Error(String(error));
  return { name, message: redactor.text(message).slice(0, MAX_QUOTE) };
}

function answerFailure(error: A2AError, host: string, redactor: Redactor): RemoteFailure {
  const code = codeOf(error);
  const remedy = CODE_REMEDIES[code ?? 0];
  const number = code === undefined ? '' : ` ${code}`;
  const text = quoted(error.message, redactor);
  const message = `The agent at ${host} answered with the error${number}: ${text}${remedy ? ` (${remedy})` : ''}`;
  // `unknown`, because the SDK's error classes have the same shape and the compiler would narrow wrongly.
  const kind: unknown = error;
  if (kind instanceof TaskNotFoundError) return new RemoteFailure('gone', message);
  if (kind instanceof UnsupportedOperationError || code === METHOD_NOT_FOUND)
    return new RemoteFailure('unsupported', message);
  const isInternal = code === INTERNAL_ERROR || (isRestError(error) && error.statusCode >= 500);
  return new RemoteFailure(isInternal ? 'failing' : 'final', message);
}

/** The remedy for a JSON-RPC or A2A error. */
const CODE_REMEDIES: Record<number, string> = {
  [-32005]: 'it does not take this type of content',
  [-32008]: 'add the extension to the setting extensions of this agent',
  [-32009]: 'set version of this agent to one that it supports',
  [METHOD_NOT_FOUND]: 'set version or binding of this agent to what it supports',
};

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
