import { ProtocolError } from '@baton/a2a';
import { z } from 'zod';
import { QueryPipe, textQuery } from '../openapi/query-pipe.js';

const DEFAULT_LIMIT = 50;
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
