import { ProtocolError } from '@baton/a2a';

/** A flag of the query; left out = false. Throws `invalid-params`. */
export function readFlag(name: string, text: string | undefined): boolean {
  if (text === undefined || text === 'false') return false;
  if (text === 'true') return true;
  throw ProtocolError.invalidParams(name, 'must be true or false');
}
