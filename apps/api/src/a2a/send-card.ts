import type { FastifyReply, FastifyRequest } from 'fastify';
import type { CardSheet } from './card-sheets.js';

/** How long a card may be used without asking again, in seconds. */
const MAX_AGE = 60;

/**
 * Answer with a card, or with 304 if the caller has it already.
 * @param audience whether caches between here and the caller may show it to others
 */
export async function sendCard(
  { json, etag }: CardSheet,
  audience: 'public' | 'private',
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  reply.headers({
    'cache-control': `${audience}, max-age=${String(MAX_AGE)}`,
    etag,
    vary: 'Authorization, A2A-Version',
  });
  if (matches(request.headers['if-none-match'], etag)) await reply.status(304).send();
  else await reply.header('content-type', 'application/json; charset=utf-8').send(json);
}

/** RFC 9110 §13.1.2: any of a list, compared without regard to weakness; `*` is whatever there is. */
function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  const tags = ifNoneMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes('*') || tags.includes(etag.replace(/^W\//, ''));
}
