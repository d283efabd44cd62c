import { APICallError } from 'ai';
import { OutboundRefused, failureReason } from '@baton/outbound';
import { Redactor } from '../../outbound/redactor.js';
import { AgentFailure } from './agent-failure.js';
import { BrokenAnswer } from './broken-answer.js';
import { ModelTimeout } from './model-timeout.js';
import { remedyOf } from './provider-remedies.js';
import type { OpenModel } from './providers.js';
import { ProviderError } from './wire/provider-error.js';
import type { Complaint } from './wire/provider-complaint.js';

/** Why a model call failed, and whether a retry may help. */
export interface ProviderFailure {
  /** For the caller: the provider, the problem and the remedy. */
  reason: string;
  /** For metrics: `429`, `timeout`, `network` and so on. */
  kind: string;
  retryable: boolean;
  /** The request has more tokens than the model takes. */
  isTooLarge?: true;
  /** The provider may not take a file of the request. */
  mayBeFiles?: true;
  /** The wait that the provider asks for, in ms. */
  retryAfterMs?: number;
  /** For the log of the operator: the answer of the provider, without secrets. */
  complaint?: Complaint;
}

/** Characters of a provider's own words. The status of the task, which lists show, has them. */
const MAX_MESSAGE = 300;
const LATE = {
  timeout: 'did not end its answer',
  firstToken: 'did not begin to answer',
  stall: 'fell silent in the middle of its answer',
} as const;

/** Explains an error in plain words, without the key and without a stack. */
export function explain(error: unknown, model: OpenModel): ProviderFailure {
  const { provider } = model;
  const cause = causeOf(error);
  if (cause instanceof ProviderError) return ofComplaint(cause.complaint, model);
  if (cause instanceof ModelTimeout) {
    const { setting, ms } = cause;
    const reason = `${provider} ${LATE[setting]} within ${ms / 1000} s (${setting} of the agent's settings).`;
    return { reason, kind: 'timeout', retryable: true };
  }
  if (cause instanceof OutboundRefused) {
    return {
      reason: `${provider} cannot be called: ${failureReason(cause)}.`,
      kind: 'refused',
      retryable: false,
    };
  }
  if (isNotTaken(cause)) {
    const reason = `${provider} does not take this in the model "${model.name}": ${cleanMessage(cause, model)}.`;
    return { reason, kind: 'unsupported', retryable: false, mayBeFiles: true };
  }
  const network = failureReason(cause);
  if (network) {
    return { reason: `${provider} cannot be reached: ${network}.`, kind: 'network', retryable: true };
  }
  const detail = isTold(cause) ? ` (${cleanMessage(cause, model)})` : '';
  return { reason: `${provider} broke off its answer${detail}.`, kind: 'broken', retryable: true };
}

/** Whether the message of an error is for callers: those of other errors are about the inside of the AI SDK. */
const isTold = (error: unknown): boolean =>
  error instanceof BrokenAnswer
    ? error.message !== ''
    : error instanceof Error && error.name.startsWith('AI_') && !APICallError.isInstance(error);

/** The first error of Baton among an error and its causes: the AI SDK wraps errors of its fetch. */
export function causeOf(error: unknown): unknown {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 10; cause = cause.cause, depth++) {
    if (KNOWN.some((known) => cause instanceof known)) return cause;
  }
  return error;
}

const KNOWN = [ProviderError, ModelTimeout, OutboundRefused, BrokenAnswer, AgentFailure];

function ofComplaint(raw: Complaint, model: OpenModel): ProviderFailure {
  const { status, retryAfterMs } = raw;
  const complaint = { ...raw, ...(raw.message !== undefined && { message: clean(raw.message, model) }) };
  const words = complaint.message?.replace(/\.$/, '').slice(0, MAX_MESSAGE) ?? '';
  const remedy = remedyOf(complaint, model);
  const isRetryable = remedy.retryable && complaint.shouldRetry !== false;
  const clause = words === '' ? '' : `: ${words}`;
  return {
    reason: `${model.provider} ${remedy.problem} (${status})${clause}. ${remedy.remedy}`,
    kind: String(status),
    retryable: isRetryable,
    ...(remedy.isTooLarge && { isTooLarge: true }),
    ...(isAboutFiles(complaint) && { mayBeFiles: true }),
    ...(isRetryable && retryAfterMs !== undefined && { retryAfterMs }),
    complaint,
  };
}

/** Whether a provider may have refused a request for one of its files. They are the largest part of a request that is too large. */
const isAboutFiles = ({ status, code = '', type = '', message = '' }: Complaint): boolean =>
  [400, 404, 413, 415, 422].includes(status) &&
  (status === 413 || status === 415 || FILES.test(`${code} ${type} ${message}`));
const FILES =
  /image|media|document|\bpdf\b|\bfiles?\b|input_file|inline.?data|vision|multi.?modal|audio|mime/i;

/** The message of an error on one line and without secrets. */
function cleanMessage(error: unknown, model: OpenModel): string {
  const message: unknown = (error as { message?: unknown } | null)?.message;
  const text = clean(typeof message === 'string' ? message : 'it gave no reason', model);
  return text.replace(/\.$/, '').slice(0, MAX_MESSAGE);
}

/** Text of a provider on one line and without secrets, also not with the end of a key after stars. */
function clean(text: string, { key, redactor }: OpenModel): string {
  const open = redactor.text(new Redactor(key ? [key] : [], '[key]').text(text));
  return open
    .replace(/[^\s"'`]{0,200}\*{3,200}[^\s"'`.,]{0,200}/g, '[key]')
    .replace(/\s+/g, ' ')
    .trim();
}

/** Whether the SDK refused content that the provider's interface does not support. */
const isNotTaken = (error: unknown): boolean =>
  error instanceof Error &&
  ['AI_UnsupportedFunctionalityError', 'AI_InvalidPromptError', 'AI_InvalidArgumentError'].includes(
    error.name,
  );
