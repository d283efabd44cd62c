import { SLUG } from '@baton/a2a';
import { UsageError } from '../usage-error.js';

/** Throws UsageError for a text that cannot name a new tenant. */
export function assertTenantSlug(slug: string): void {
  if (SLUG.test(slug)) return;
  throw new UsageError(
    `"${slug}" cannot name a tenant: use 1 to 63 lower-case letters, digits or hyphens, beginning and ending with a letter or digit.`,
  );
}
