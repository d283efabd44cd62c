import { createHash } from 'node:crypto';
import {
  AgentCard,
  parsePublishedKeys,
  parseSigningKey,
  publicKeyOf,
  type PublishedKey,
  signCard,
  type SigningKey,
} from '@baton/a2a';
import { Environment } from '@baton/config';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { PublicUrl } from '../http/public-url.js';

/** Path of the keys that verify signatures. */
export const JWKS_PATH = '/.well-known/jwks.json';

/** Signs agent cards if a key is configured, once per content. */
@Injectable()
export class CardSigner {
  private readonly signed = new LRUCache<string, Promise<AgentCard>>({ max: 1_000 });
  private readonly key: SigningKey | undefined;
  /** The keys that verify signatures. The signing keys are first. Several processes may sign with different keys. */
  readonly published: readonly PublishedKey[];

  /** Throws an Error with a plain reason if a key cannot be used. */
  constructor(
    { cardSigningKey, pushSigningKey, previousCardSigningKeys }: Environment,
    private readonly publicUrl: PublicUrl,
  ) {
    this.key = cardSigningKey === undefined ? undefined : parseSigningKey(cardSigningKey);
    const others = previousCardSigningKeys === '' ? [] : parsePublishedKeys(previousCardSigningKeys);
    // Workers sign with the key of push notifications. Receivers fetch its public part here.
    const pushKey = pushSigningKey === undefined ? [] : [publicKeyOf(parseSigningKey(pushSigningKey))];
    const keys = [...(this.key ? [publicKeyOf(this.key)] : []), ...pushKey, ...others];
    this.published = keys.filter(({ kid }, i) => keys.findIndex((other) => other.kid === kid) === i);
  }

  /** The id of the key that signs; undefined if cards are not signed. */
  get kid(): string | undefined {
    return this.key?.kid;
  }

  /** The card, signed if there is a key. */
  sign(card: AgentCard): Promise<AgentCard> {
    const { key } = this;
    if (!key) return Promise.resolve(card);
    const content = createHash('sha256')
      .update(JSON.stringify(AgentCard.toJSON(card)))
      .digest('base64url');
    let signed = this.signed.get(content);
    if (!signed) {
      signed = signCard(card, key, this.publicUrl.value + JWKS_PATH);
      this.signed.set(content, signed);
    }
    return signed;
  }
}
