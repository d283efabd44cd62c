import { parseSigningKey, type SigningKey } from '@baton/a2a';
import { Environment } from '@baton/config';
import { isSigningSecret, SIGNING_PREFIX } from '@baton/identity';
import { Inject, Injectable } from '@nestjs/common';
import { SignJWT } from 'jose';
import { createHash, createHmac, randomUUID } from 'node:crypto';

/** How long a receiver may accept a signature. Clocks differ, and a connection may be slow. */
const VALID_S = 300;

/** One request to a receiver. A delivery that is repeated has the same id and body. */
export interface Delivery {
  /** Id of the event for this config (`deliveryId`). */
  id: string;
  /** As it is sent, byte for byte. */
  body: string | Buffer;
  url: string;
  /** Unset: it is about no task. */
  taskId?: string;
  /** When this attempt is made. */
  at: Date;
}

/** Credentials of the receiver, and its signing secrets. */
export interface ReceiverSecrets {
  /** Sent as it is. */
  token?: string | undefined;
  /** Scheme of the config's `authentication`, such as `Bearer`. */
  scheme?: string | undefined;
  credentials?: string | undefined;
  /** `whsec_…`: each makes a signature, the newest first. Two while a secret is changed. */
  signingSecrets?: readonly string[] | undefined;
}

/**
 * The id of an event in a delivery: the same for each attempt, unlike that of any other event or config. Callers choose
 * the ids of configs, so these are written in letters that a header may have. The id has no full stop, which separates
 * the signed parts in Standard Webhooks.
 */
export const deliveryId = (taskId: string, configId: string, sequence: number): string =>
  `${taskId}:${encodeURIComponent(configId).replaceAll('.', '%2E')}:${sequence}`;

/**
 * Makes the headers of a delivery that prove who sends it: the config's own token and credentials, a JWT by the platform,
 * and Standard Webhooks (https://www.standardwebhooks.com).
 */
@Injectable()
export class DeliverySigner {
  // `#private`, so that printing or logging a signer shows no key.
  readonly #key: SigningKey | undefined;
  private readonly issuer: string;

  /** Throws an Error with a plain reason if the key cannot be used. */
  constructor(
    @Inject(Environment)
    environment: Pick<Environment, 'pushSigningKey' | 'cardSigningKey' | 'publicUrl'>,
  ) {
    const { pushSigningKey, cardSigningKey, publicUrl } = environment;
    const text = pushSigningKey ?? cardSigningKey;
    this.#key = text === undefined ? undefined : parseSigningKey(text);
    this.issuer = publicUrl;
  }

  /** Names are in lower case. */
  async headers(delivery: Delivery, secrets: ReceiverSecrets): Promise<Record<string, string>> {
    const { token, scheme = 'Bearer', credentials, signingSecrets = [] } = secrets;
    // A signing secret proves knowledge of itself. Sending it would reveal it.
    const isSecret = credentials !== undefined && isSigningSecret(credentials);
    const jwt = this.#key && (await this.jwt(delivery, this.#key));
    const asBearer = secrets.scheme?.toLowerCase() === 'bearer' && credentials === undefined && jwt;
    return {
      ...standardWebhooks(delivery, isSecret ? [credentials, ...signingSecrets] : signingSecrets),
      ...(token !== undefined && { 'x-a2a-notification-token': token }),
      ...(credentials !== undefined && !isSecret && { authorization: `${scheme} ${credentials}` }),
      ...(jwt && { 'baton-signature': jwt }),
      // The flow of the A2A documentation: the caller asks for a bearer token, and the server makes it.
      ...(asBearer && { authorization: `Bearer ${jwt}` }),
    };
  }

  /** Bound to the receiver by `aud`, to the event by `sub`, to the body by its hash. Each attempt has an id of its own. */
  private jwt(
    { id, body, url, taskId, at }: Delivery,
    { privateKey, kid, alg }: SigningKey,
  ): Promise<string> {
    const seconds = Math.floor(at.getTime() / 1000);
    return new SignJWT({
      ...(taskId !== undefined && { taskId }),
      // The name that the push examples of A2A verify.
      request_body_sha256: createHash('sha256').update(body).digest('hex'),
    })
      .setProtectedHeader({ alg, kid, typ: 'JWT', jku: `${this.issuer}/.well-known/jwks.json` })
      .setIssuer(this.issuer)
      .setAudience(new URL(url).origin)
      .setSubject(id)
      .setJti(randomUUID())
      .setIssuedAt(seconds)
      .setExpirationTime(seconds + VALID_S)
      .sign(privateKey);
  }
}

/** The id and the time are of use without a secret as well. */
function standardWebhooks({ id, body, at }: Delivery, secrets: readonly string[]): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1000));
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(SIGNING_PREFIX.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64')}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    ...(signatures.length > 0 && { 'webhook-signature': signatures.join(' ') }),
  };
}
