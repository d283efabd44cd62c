import { ProtocolError } from '@baton/a2a';

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 100;

/** Reads `?limit=`, the number of entries of a page. Throws `invalid-params`. */
export function readLimit(text: string | undefined): number {
  if (text === undefined || text === '') return DEFAULT_LIMIT;
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= MAX_LIMIT) return limit;
  throw ProtocolError.invalidParams('limit', `must be a whole number from 1 to ${String(MAX_LIMIT)}`);
}

/** Reads a flag of the query. Left out means false. Throws `invalid-params`. */
export function readFlag(name: string, text: string | undefined): boolean {
  if (text === undefined || text === 'false') return false;
  if (text === 'true') return true;
  throw ProtocolError.invalidParams(name, 'must be true or false');
}

/** The paging options of a list. */
export interface PageRequest {
  limit: number;
  cursor: string | undefined;
}

/**
 * One page of a list, in the order of its keys.
 * @returns the entries after the cursor, and the cursor of the next page; null on the last
 */
export function pageOf<T>(all: readonly T[], keyOf: (entry: T) => string, { limit, cursor }: PageRequest) {
  const after = cursor === undefined || cursor === '' ? undefined : readCursor(cursor);
  const sorted = [...all].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  const rest = after === undefined ? sorted : sorted.filter((entry) => keyOf(entry) > after);
  const page = rest.slice(0, limit);
  const last = rest.length > limit ? page.at(-1) : undefined;
  return { page, nextCursor: last === undefined ? null : writeCursor(keyOf(last)) };
}

const writeCursor = (key: string): string => Buffer.from(key).toString('base64url');

function readCursor(cursor: string): string {
  const key = Buffer.from(cursor, 'base64url').toString();
  if (key !== '' && writeCursor(key) === cursor) return key;
  throw ProtocolError.invalidParams('cursor', 'must be the next_cursor of an earlier page, or be left out');
}
