import { Environment } from '@baton/config';
import { pushSecretName, type SealedSecret } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { SecretBox } from './secret-box.js';

/** What only the receiver of push notifications may know. */
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

/** The secrets of push configs: encrypted at rest, bound to their config, never shown, never logged. */
@Injectable()
export class PushSecrets {
  private readonly box: SecretBox;

  constructor(environment: Environment) {
    this.box = new SecretBox(environment);
  }

  /** Null if there are none. Throws `SecretError` if there is no master key. */
  seal(config: ConfigKey, { token, credentials }: ReceiverCredentials): SealedSecret | null {
    if (token === undefined && credentials === undefined) return null;
    return this.box.seal(keyOf(config), JSON.stringify({ token, credentials }));
  }

  /** Throws `SecretError` if they can't be decrypted. */
  open(config: ConfigKey & { sealed: SealedSecret | null }): ReceiverCredentials {
    if (!config.sealed) return {};
    return JSON.parse(this.box.open(keyOf(config), config.sealed)) as ReceiverCredentials;
  }
}

const keyOf = ({ tenantId, taskId, configId }: ConfigKey) => ({
  tenantId,
  name: pushSecretName(taskId, configId),
});
