import { DatabaseSetupError } from './database-setup-error.js';

/** The role of DATABASE_URL is not bound by row-level security. */
export class RowSecurityError extends DatabaseSetupError {
  override readonly name = 'RowSecurityError';
}
