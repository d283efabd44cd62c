import { NotFoundError } from './not-found-error.js';

/** @throws NotFoundError with the command that lists the tenants */
export function unknownTenant(slug: string): never {
  throw new NotFoundError(`There is no tenant "${slug}": npx baton tenants list shows all tenants.`);
}
