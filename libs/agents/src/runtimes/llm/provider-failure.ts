import { APICallError, RetryError } from 'ai';
import { OutboundRefused, failureReason } from '@baton/outbound';
import { Redactor } from '../../outbound/redactor.js';
import { BrokenAnswer, ModelTimeout } from './agent-failure.js';
import type { OpenModel } from './providers.js';

/** Why a model call failed, and whether a retry may help. */
export interface ProviderFailure {
  /** For the caller: the provider, the problem and the remedy. */
  reason: string;
  /** For metrics: `429`, `timeout`, `network` and so on. */
  kind: string;
  retryable: boolean;
  /** The wait that the provider asks for, in ms. */
  retryAfterMs?: number;
}

const MAX_MESSAGE = 300;
const LATE = {
  timeout: 'did not end its answer',
  firstToken: 'did not begin to answer',
  stall: 'fell silent in the middle of its answer',
} as const;

/** Explains an error in plain words, without the key and without a stack. */
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
  const isBare = cause instanceof BrokenAnswer && cause.message === '';
  const detail = isBare ? '' : ` (${said(cause, model)})`;
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

/** Reads `Retry-After` (RFC 9110, section 10.2.3), or the header in milliseconds that some providers send. */
function retryAfter(headers: Record<string, string> | undefined): number | undefined {
  const ms = Number(headers?.['retry-after-ms'] ?? NaN);
  if (ms >= 0) return ms;
  const text = headers?.['retry-after'];
  if (text === undefined) return undefined;
  const seconds = Number(text);
  const at = Number.isNaN(seconds) ? Date.parse(text) - Date.now() : seconds * 1000;
  return Number.isNaN(at) ? undefined : Math.max(0, at);
}

/** The provider's message on one line and without the key. */
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

/** Whether the SDK refused content that the provider's interface does not support. */
const isNotTaken = (error: unknown): boolean =>
  error instanceof Error &&
  ['AI_UnsupportedFunctionalityError', 'AI_InvalidPromptError', 'AI_InvalidArgumentError'].includes(
    error.name,
  );
