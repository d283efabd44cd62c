import type { PublishedKey } from '@baton/a2a';
import { Controller, Get, Header } from '@nestjs/common';
import { Public } from '../access/route-access.js';
import { CardSigner, JWKS_PATH } from '../core/card-signer.js';

/** The keys that verify what this server signs, as a JWK Set (RFC 7517 §5). Without a key it is empty. */
@Public()
@Controller(JWKS_PATH)
export class JwksController {
  constructor(private readonly signer: CardSigner) {}

  @Get()
  @Header('cache-control', 'public, max-age=300')
  keys(): { keys: readonly PublishedKey[] } {
    return { keys: this.signer.published };
  }
}
