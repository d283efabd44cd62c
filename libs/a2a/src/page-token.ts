import { ProtocolError } from './protocol-error.js';
import { isUuid } from './ids.js';

/** Position of the last row of a page of ListTasks; the next page continues after it. */
export interface PagePosition {
  statusAt: Date;
  taskId: string;
}

const ISO_MS = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
/** The token of the previous page. */
const NEXT = { pageToken: 'nextPageToken', cursor: 'next_cursor' } as const;
/** base64url of `["<date>","<uuid>"]` is 90 characters. */
const MAX_TOKEN_LENGTH = 128;

/** An opaque token for callers. It names a position, grants nothing: the tenant still comes from the caller. */
export const encodePageToken = ({ statusAt, taskId }: PagePosition): string =>
  Buffer.from(JSON.stringify([statusAt.toISOString(), taskId])).toString('base64url');

/**
 * Inverse of `encodePageToken`. Throws `invalid-params` for anything it would not have made itself.
 * @param field where the caller wrote it: `cursor` in the REST API
 */
export function decodePageToken(token: string, field: 'pageToken' | 'cursor' = 'pageToken'): PagePosition {
  const position = token.length <= MAX_TOKEN_LENGTH ? parse(token) : undefined;
  if (position) return position;
  throw ProtocolError.invalidParams(
    field,
    `is not a token this server has issued: use ${NEXT[field]} of the page before, or leave it out`,
  );
}

function parse(token: string): PagePosition | undefined {
  try {
    const parts: unknown = JSON.parse(Buffer.from(token, 'base64url').toString());
    if (!Array.isArray(parts) || parts.length !== 2) return undefined;
    const [at, taskId] = parts as unknown[];
    if (typeof at !== 'string' || !ISO_MS.test(at)) return undefined;
    if (typeof taskId !== 'string' || !isUuid(taskId)) return undefined;
    const statusAt = new Date(at);
    return Number.isNaN(statusAt.getTime()) ? undefined : { statusAt, taskId };
  } catch {
    return undefined;
  }
}
