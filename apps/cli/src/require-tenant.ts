import type { Tenant, TenantStore } from '@baton/database';
import { OperatorError } from './operator-error.js';

/** The tenant of that slug. Throws OperatorError if there is none. */
export async function requireTenant(tenants: TenantStore, slug: string): Promise<Tenant> {
  const tenant = await tenants.bySlug(slug);
  return tenant ?? unknownTenant(slug);
}

/** Throws OperatorError. */
export function unknownTenant(slug: string): never {
  throw new OperatorError(`There is no tenant "${slug}": npx baton tenants list shows those there are.`);
}
