import { APICallError, RetryError } from 'ai';
import { OutboundRefused } from '../../outbound/outbound-refused.js';
import { failureReason } from '../../outbound/failure-reason.js';
import { Redactor } from '../../outbound/redactor.js';
import type { OpenModel } from './providers.js';

/** Why a call of a model failed, and whether another try may help. */
export interface ProviderFailure {
  /** For the caller: which provider, what happened, what to do. */
  reason: string;
  /** For metrics: `429`, `timeout`, `network` … */
  kind: string;
  retryable: boolean;
  /** How long the provider asks to wait, in ms. */
  retryAfterMs?: number;
}

/** A time limit of the agent's settings ran out. */
export class ModelTimeout extends Error {
  constructor(
    readonly setting: 'timeout' | 'firstToken' | 'stall',
    readonly ms: number,
  ) {
    super(`${setting} of ${ms} ms`);
  }
}

/** The stream of an answer ended without the answer's end. */
export class BrokenAnswer extends Error {}

const MAX_MESSAGE = 300;
const LATE = {
  timeout: 'did not end its answer',
  firstToken: 'did not begin to answer',
  stall: 'fell silent in the middle of its answer',
} as const;

/** Says in plain words what went wrong. Neither the key nor a stack is in it. */
export function explain(error: unknown, model: OpenModel): ProviderFailure {
  const { provider } = model;
  const cause = RetryError.isInstance(error) ? error.lastError : error;
  if (cause instanceof ModelTimeout) {
    const { setting, ms } = cause;
    const reason = `${provider} ${LATE[setting]} within ${ms / 1000} s (${setting} of the agent's settings).`;
    return { reason, kind: 'timeout', retryable: true };
  }
  if (isRefused(cause)) {
    return {
      reason: `${provider} can not be called: ${failureReason(cause)}.`,
      kind: 'refused',
      retryable: false,
    };
  }
  if (APICallError.isInstance(cause) && cause.statusCode !== undefined && cause.statusCode >= 400) {
    return ofStatus(cause, cause.statusCode, model);
  }
  if (isNotTaken(cause)) {
    const reason = `${provider} does not take this in the model "${model.name}": ${said(cause, model)}.`;
    return { reason, kind: 'unsupported', retryable: false };
  }
  const network = failureReason(cause);
  if (network) {
    return { reason: `${provider} can not be reached: ${network}.`, kind: 'network', retryable: true };
  }
  const detail = cause instanceof BrokenAnswer ? '' : ` (${said(cause, model)})`;
  return { reason: `${provider} broke off its answer${detail}.`, kind: 'broken', retryable: true };
}

function ofStatus(error: APICallError, status: number, model: OpenModel): ProviderFailure {
  const { provider, name, keyName } = model;
  const kind = String(status);
  if (status === 401 || status === 403) {
    const reason = `${provider} refused the key (${status}): check the secret "${keyName}".`;
    return { reason, kind, retryable: false };
  }
  if (status === 404) {
    const reason = `${provider} has no model "${name}" at this address (404): check model and baseUrl of the agent.`;
    return { reason, kind, retryable: false };
  }
  const retryable = status === 408 || status === 409 || status === 429 || status >= 500;
  const retryAfterMs = retryable ? retryAfter(error.responseHeaders) : undefined;
  const reason =
    status === 429
      ? `${provider} takes no more requests for now (429): try again later, or check the quota of the key.`
      : retryable
        ? `${provider} failed (${status}): try again later.`
        : `${provider} refused the request (${status}): ${said(error, model)}.`;
  return { reason, kind, retryable, ...(retryAfterMs !== undefined && { retryAfterMs }) };
}

/** The `Retry-After` of RFC 9110, section 10.2.3, or the milliseconds that some providers add. */
function retryAfter(headers: Record<string, string> | undefined): number | undefined {
  const ms = Number(headers?.['retry-after-ms'] ?? NaN);
  if (ms >= 0) return ms;
  const text = headers?.['retry-after'];
  if (text === undefined) return undefined;
  const seconds = Number(text);
  const at = Number.isNaN(seconds) ? Date.parse(text) - Date.now() : seconds * 1000;
  return Number.isNaN(at) ? undefined : Math.max(0, at);
}

/** What the provider said, on one line and without the key. */
function said(error: unknown, { key }: OpenModel): string {
  const message: unknown = (error as { message?: unknown } | null)?.message;
  const text = typeof message === 'string' ? message : 'it gave no reason';
  const open = new Redactor(key ? [key] : [], '[key]').text(text);
  return open.replace(/\s+/g, ' ').trim().replace(/\.$/, '').slice(0, MAX_MESSAGE);
}

function isRefused(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof OutboundRefused) return true;
  }
  return false;
}

/** The SDK refuses what the provider's interface has no place for. */
const isNotTaken = (error: unknown): boolean =>
  error instanceof Error &&
  ['AI_UnsupportedFunctionalityError', 'AI_InvalidPromptError', 'AI_InvalidArgumentError'].includes(
    error.name,
  );
