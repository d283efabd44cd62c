import { clock } from '@baton/telemetry';
import { Environment } from '@baton/config';
import { pushSecretName, type SealedSecret, webhookSecretName } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { SecretBox } from './secret-box.js';
import { newSigningSecret } from './signing-secret.js';

/** The secrets of a receiver of push notifications. */
export interface ReceiverCredentials {
  /** Sent as `X-A2A-Notification-Token`. */
  token?: string | undefined;
  /** Sent after the scheme of the config, or a secret that signs. */
  credentials?: string | undefined;
}

/** Names a push config, or the one that has the same secrets. */
interface ConfigKey {
  tenantId: string;
  taskId: string;
  configId: string;
}

interface WebhookKey {
  tenantId: string;
  id: string;
}

/** A secret that must be shown now, as it is never shown again. */
export interface NewSecret {
  secret: string;
  sealed: SealedSecret;
}

/** A secret of a webhook before it is encrypted. The newest is the first. */
interface KeptSecret {
  secret: string;
  /** ISO time after which it no longer signs; unset = until it is replaced. */
  until?: string;
}

/**
 * The secrets of push configs, and those that sign deliveries of webhooks: encrypted at rest, bound to their config or webhook,
 * never logged. Everything that encrypts throws `SecretError` if there is no master key, and what decrypts, if it cannot.
 */
@Injectable()
export class PushSecrets {
  private readonly box: SecretBox;

  constructor(environment: Environment) {
    this.box = new SecretBox(environment);
  }

  /** Encrypts the credentials of a push config. Null if there are none. */
  seal(config: ConfigKey, { token, credentials }: ReceiverCredentials): SealedSecret | null {
    if (token === undefined && credentials === undefined) return null;
    return this.box.seal(keyOf(config), JSON.stringify({ token, credentials }));
  }

  /** Decrypts the credentials of a push config. */
  open(config: ConfigKey & { sealed: SealedSecret | null }): ReceiverCredentials {
    if (!config.sealed) return {};
    return JSON.parse(this.box.open(keyOf(config), config.sealed)) as ReceiverCredentials;
  }

  /** The first secret of a webhook. */
  create(webhook: WebhookKey): NewSecret {
    const secret = newSigningSecret();
    return { secret, sealed: this.sealSigning(webhook, [{ secret }]) };
  }

  /** Another secret of a webhook. The one before continues to sign beside it. @param overlapMs for how long */
  rotate(webhook: WebhookKey, before: SealedSecret, overlapMs: number, now = clock.now()): NewSecret {
    const secret = newSigningSecret();
    const until = new Date(now + overlapMs).toISOString();
    const [last] = this.openSigning(webhook, before);
    const previous = last && overlapMs > 0 ? [{ secret: last.secret, until }] : [];
    return { secret, sealed: this.sealSigning(webhook, [{ secret }, ...previous]) };
  }

  /** The secrets of a webhook that sign now, the newest first. */
  inForce(webhook: WebhookKey, sealed: SealedSecret, now = clock.now()): string[] {
    return this.openSigning(webhook, sealed)
      .filter(({ until }) => until === undefined || Date.parse(until) > now)
      .map(({ secret }) => secret);
  }

  private sealSigning(webhook: WebhookKey, secrets: KeptSecret[]): SealedSecret {
    return this.box.seal(keyOf(webhook), JSON.stringify(secrets));
  }

  private openSigning(webhook: WebhookKey, sealed: SealedSecret): KeptSecret[] {
    return JSON.parse(this.box.open(keyOf(webhook), sealed)) as KeptSecret[];
  }
}

const keyOf = (of: ConfigKey | WebhookKey) => ({
  tenantId: of.tenantId,
  name: 'id' in of ? webhookSecretName(of.id) : pushSecretName(of.taskId, of.configId),
});
