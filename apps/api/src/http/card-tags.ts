import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import fresh from 'fresh';
import { LRUCache } from 'lru-cache';
import { vary } from './requests.js';

/** How long caches may keep a card, in seconds. */
const MAX_AGE = 60;

/** When this process has first answered with the card of a tag, as the header `Last-Modified` has it. */
const firstAnswered = new LRUCache<string, string>({
  max: 10_000,
  memoMethod: () => new Date().toUTCString(),
});

/** The ETag of a card without signatures, as the header has it. */
export const cardTag = (json: string): string =>
  `"${createHash('sha256').update(json).digest('base64url').slice(0, 27)}"`;

/**
 * The ETag of a card that may be signed. Two signatures of the same card differ. So the tag is made of the signed text and the key,
 * and is weak (RFC 9110 §8.8.1).
 */
export function signedCardTag({
  signatures,
  ...card
}: {
  signatures?: readonly { protected: string }[];
}): string {
  if (!signatures?.length) return cardTag(JSON.stringify(card));
  return `W/${cardTag(JSON.stringify([card, signatures.map((signature) => signature.protected)]))}`;
}

/**
 * Sets the headers with which the caller may cache a card. Only the tag counts, and no date: a card also depends on settings of the server,
 * and a slug can later name an agent that is older than the one before.
 * @param audience whether caches between here and the caller may show it to others
 * @returns whether the caller has this card already: answer 304 then
 */
export function isKnownCard(
  etag: string,
  audience: 'public' | 'private',
  { headers }: FastifyRequest,
  reply: FastifyReply,
): boolean {
  reply.headers({
    'cache-control': `${audience}, max-age=${String(MAX_AGE)}`,
    'last-modified': firstAnswered.memo(etag),
    etag,
  });
  vary(reply, 'Authorization', 'A2A-Version');
  return fresh({ 'if-none-match': headers['if-none-match'] }, { etag });
}
