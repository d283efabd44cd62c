import { ProtocolError } from '@baton/a2a';
import type { LimitName } from '@baton/config';
import { LimitReachedError } from '@baton/database';

/** `Retry-After` where something must be deleted first. */
const FULL_RETRY_SECONDS = 60;

/** What makes room where a limit of what a tenant keeps is reached. */
const REMEDIES: Partial<Record<LimitName, string>> = {
  agents: 'delete agents that you no longer need',
  secrets: 'remove secrets that no agent uses',
  schedules: 'remove schedules that you no longer need',
  webhooks: 'delete unused webhooks',
  tokens: 'revoke unused tokens',
  pushConfigs: 'delete one of the task',
  storedBytes: 'delete what you no longer need, or wait until old tasks are deleted',
};

/** For the error of a write: throws `limit-exceeded` if a limit of the tenant leaves no room for it. */
export function explainLimit(error: unknown): never {
  if (!(error instanceof LimitReachedError)) throw error;
  const remedy = `${REMEDIES[error.limit] ?? 'delete something'}, or ask the operator for more`;
  throw ProtocolError.limitExceeded(error.limit, error.max, FULL_RETRY_SECONDS, remedy);
}
