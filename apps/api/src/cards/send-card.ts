import { type CardForm, parseVersion } from '@baton/a2a';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { requestedVersion } from '../core/call-headers.js';
import { isKnownCard } from '../http/card-tags.js';
import type { RenderedCard } from './card-renderer.js';

/** A request with version 1.0 or 0.3 gets the card of that version. Other requests get both (wire contract P-11). */
export function cardFormFor(request: FastifyRequest): CardForm {
  const version = parseVersion(requestedVersion(request) ?? '');
  if (version === '1.0') return '1.0';
  return version === '0.3' ? '0.2' : 'both';
}

/**
 * Answer with a card, or with 304 if the caller has it already.
 * @param audience whether caches between here and the caller may show it to others
 */
export async function sendCard(
  { json, etag }: RenderedCard,
  audience: 'public' | 'private',
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  if (isKnownCard(etag, audience, request, reply)) await reply.status(304).send();
  else await reply.header('content-type', 'application/json; charset=utf-8').send(json);
}
