import type { TenantLimits } from './limits.js';
import type { Environment } from './environment.js';

/**
 * The limits of a tenant where it has no own value. A tenant that predates the default retention has none, unless the operator
 * has set LIMIT_RETENTION_DAYS.
 */
export function defaultLimitsOf(
  { defaultLimits, isRetentionSet }: Pick<Environment, 'defaultLimits' | 'isRetentionSet'>,
  { predatesRetention = false }: { predatesRetention?: boolean } = {},
): Readonly<TenantLimits> {
  return predatesRetention && !isRetentionSet ? { ...defaultLimits, retentionDays: null } : defaultLimits;
}
