import { ProtocolError } from '@baton/a2a';

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 100;

/** Entries of a page, as `?limit=` asks for them. Throws `invalid-params`. */
export function readLimit(text: string | undefined): number {
  if (text === undefined || text === '') return DEFAULT_LIMIT;
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= MAX_LIMIT) return limit;
  throw ProtocolError.invalidParams('limit', `must be a whole number from 1 to ${String(MAX_LIMIT)}`);
}
