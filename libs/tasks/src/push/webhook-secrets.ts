import { Environment } from '@baton/config';
import { type SealedSecret, webhookSecretName } from '@baton/database';
import { SecretBox } from '@baton/identity';
import { Injectable } from '@nestjs/common';
import { newSigningSecret } from './delivery-signer.js';

/** The secrets of a webhook before they are encrypted, the newest first. */
interface Kept {
  secret: string;
  /** ISO time after which it no longer signs; unset = until it is replaced. */
  until?: string;
}

/** A secret that somebody must be told of now, for it is never shown again. */
export interface NewSecret {
  secret: string;
  sealed: SealedSecret;
}

interface WebhookKey {
  tenantId: string;
  id: string;
}

/** The secrets that sign deliveries of webhooks: encrypted with the master key, bound to their webhook. */
@Injectable()
export class WebhookSecrets {
  private readonly box: SecretBox;

  constructor(environment: Environment) {
    this.box = new SecretBox(environment);
  }

  /** The first secret of a webhook. Throws `SecretError` if there is no master key. */
  create(webhook: WebhookKey): NewSecret {
    const secret = newSigningSecret();
    return { secret, sealed: this.seal(webhook, [{ secret }]) };
  }

  /** Another secret. The one before goes on signing beside it. @param overlapMs for how long */
  rotate(webhook: WebhookKey, before: SealedSecret, overlapMs: number, now = Date.now()): NewSecret {
    const secret = newSigningSecret();
    const until = new Date(now + overlapMs).toISOString();
    const [last] = this.read(webhook, before);
    const previous = last && overlapMs > 0 ? [{ secret: last.secret, until }] : [];
    return { secret, sealed: this.seal(webhook, [{ secret }, ...previous]) };
  }

  /** Those that sign now, the newest first. Throws `SecretError` if they can't be decrypted. */
  inForce(webhook: WebhookKey, sealed: SealedSecret, now = Date.now()): string[] {
    return this.read(webhook, sealed)
      .filter(({ until }) => until === undefined || Date.parse(until) > now)
      .map(({ secret }) => secret);
  }

  private seal(webhook: WebhookKey, secrets: Kept[]): SealedSecret {
    return this.box.seal(keyOf(webhook), JSON.stringify(secrets));
  }

  private read(webhook: WebhookKey, sealed: SealedSecret): Kept[] {
    // oxlint-disable-next-line no-restricted-properties -- what this class has encrypted itself
    return JSON.parse(this.box.open(keyOf(webhook), sealed)) as Kept[];
  }
}

const keyOf = ({ tenantId, id }: WebhookKey) => ({ tenantId, name: webhookSecretName(id) });
