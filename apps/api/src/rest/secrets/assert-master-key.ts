import { ProtocolError } from '@baton/a2a';
import { Environment } from '@baton/config';

const NO_MASTER_KEY =
  'this installation stores no secrets: its operator must set BATON_MASTER_KEY (or _FILE, _COMMAND) for every process';

/** Throws `not-configured`. */
export function assertMasterKey({ masterKey }: Pick<Environment, 'masterKey'>): void {
  if (!masterKey) throw new ProtocolError('not-configured', NO_MASTER_KEY);
}
