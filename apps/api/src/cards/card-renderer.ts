import { type AgentCard, type CardForm, encodeCard } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { CardSigner } from '../core/card-signer.js';
import { cardTag } from '../http/card-tags.js';

/** A card ready to be sent. */
export interface RenderedCard {
  json: string;
  /** As the header has it, quotes included. */
  etag: string;
}

/** Serializes agent cards, and signs them when a key is configured. */
@Injectable()
export class CardRenderer {
  constructor(private readonly signer: CardSigner) {}

  /**
   * The card's JSON in one form, and its ETag. A signature is different every time it is made, also of the
   * same card, so the tag is made of what is signed and is a weak one (RFC 9110 §8.8.1).
   */
  async render(card: AgentCard, form: CardForm): Promise<RenderedCard> {
    const unsigned = this.renderUnsigned(encodeCard(card, form));
    const { kid } = this.signer;
    if (kid === undefined) return unsigned;
    const hash = unsigned.etag.slice(1, -1);
    const etag = `W/"${hash}.${kid.replaceAll(/[^\w-]/g, '')}"`;
    return { json: JSON.stringify(encodeCard(await this.signer.sign(card), form)), etag };
  }

  /** A card that is in its final form. */
  renderUnsigned(card: Record<string, unknown>): RenderedCard {
    const json = JSON.stringify(card);
    return { json, etag: cardTag(json) };
  }
}
