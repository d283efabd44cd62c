import { DatabaseSetupError } from './database-setup-error.js';

/** This process has another master key than the database. */
export class MasterKeyError extends DatabaseSetupError {
  override readonly name = 'MasterKeyError';
}
