import { NotFoundError } from './not-found-error.js';

/** @throws NotFoundError, which says how to list the tenants */
export function unknownTenant(slug: string): never {
  throw new NotFoundError(`There is no tenant "${slug}": npx baton tenants list shows all tenants.`);
}
