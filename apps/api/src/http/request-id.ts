import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** What we take over from a caller or a proxy: short, and harmless in a log line or a header. */
const SANE_ID = /^[\w.:/+=-]{1,128}$/;

/** The id of a request: the caller's `x-request-id` if it is sane, else a new one. */
export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && SANE_ID.test(given) ? given : randomUUID();
}
