import { ProtocolError } from '@baton/a2a';
import { z } from 'zod';
import { QueryPipe, textQuery } from '../openapi/query-pipe.js';

/** A page that a person scrolls through. */
const DEFAULT_LIMIT = 50;
/** A page is built in memory, and its rows may be large. */
const MAX_LIMIT = 100;

/** `?limit=`, the number of entries of a page. */
export const LIMIT = new QueryPipe(
  {
    description: 'Maximum number of entries of the page',
    schema: { type: 'integer', minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT },
  },
  (text, name) => {
    if (text === undefined || text === '') return DEFAULT_LIMIT;
    const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0;
    if (limit >= 1 && limit <= MAX_LIMIT) return limit;
    throw ProtocolError.invalidParams(name, `must be a whole number from 1 to ${String(MAX_LIMIT)}`);
  },
);

/** `?cursor=`. Each list has cursors of its own. */
export const CURSOR = textQuery('The `next_cursor` of the page before. Left out or empty: the first page');

/** The cursor in an answer. */
export const nextCursor = z
  .string()
  .nullable()
  .describe('The cursor of the next page. Null: this is the last');

/** Which entries of a list are asked for, by their keys. */
export interface PageRequest {
  limit: number;
  /** The key of the last entry before; undefined = from the start. */
  after: string | undefined;
}

/** The page that a cursor of a list by keys asks for. Throws `invalid-params`. */
export function readPage(limit: number, cursor: string | undefined): PageRequest {
  return { limit, after: cursor === undefined || cursor === '' ? undefined : readCursor(cursor) };
}

/** One more than the page has: without it, the page is the last. */
export const oneMore = ({ limit, after }: PageRequest): PageRequest => ({ limit: limit + 1, after });

/**
 * Leaves out the extra entry that was read to find out whether another page follows.
 * @param found the entries in their order; at least one more than `limit`, if there are more
 * @returns the page, and its last entry if another page follows
 */
export function cutPage<T>(found: readonly T[], limit: number): { page: T[]; last: T | undefined } {
  const page = found.slice(0, limit);
  return { page, last: found.length > limit ? page.at(-1) : undefined };
}

/**
 * The page that was asked for.
 * @param found the entries after the cursor in their order; at least one more than the page, if there are more
 * @returns its entries, and the cursor of the next page; null on the last
 */
export function pageOf<T>(found: readonly T[], keyOf: (entry: T) => string, { limit }: PageRequest) {
  const { page, last } = cutPage(found, limit);
  return { page, nextCursor: last === undefined ? null : writeCursor(keyOf(last)) };
}

/** The cursor of the page after the entry with this key. */
export const writeCursor = (key: string): string => Buffer.from(key).toString('base64url');

function readCursor(cursor: string): string {
  const key = Buffer.from(cursor, 'base64url').toString();
  // No key has U+0000, which Postgres refuses in a text.
  if (key !== '' && !key.includes('\0') && writeCursor(key) === cursor) return key;
  throw ProtocolError.invalidParams('cursor', 'must be the next_cursor of an earlier page, or be left out');
}
