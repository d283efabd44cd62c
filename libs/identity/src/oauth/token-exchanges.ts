import { type OAuthSettings, oauthResource, type SubjectToken } from '@baton/a2a';
import { type Actor, OAuthSignInStore } from '@baton/database';
import { Logger, messageOf, within } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { v7 as uuid } from 'uuid';
import { withoutSlash } from './authorization-server.js';
import { OAuthConnections } from './oauth-connections.js';
import { OAuthFailure } from './oauth-failure.js';

/** How long a message waits for an exchange, in ms. A later exchange continues in the background and wakes the task that needs it. */
const MAX_WAIT_MS = 5_000;
/** How long after a failed exchange no message of the caller starts another one, in ms. */
const RETRY_MS = 30_000;
/** Maximum number of failures that a process keeps. A caller whose failure was dropped may try again earlier. */
const MAX_FAILED = 10_000;

/** A caller with a token of an issuer. */
export interface ExchangingCaller {
  tenantId: string;
  by: Actor;
  subject: SubjectToken;
  /** The task that the message continues. Null: it makes one. */
  taskId: string | null;
}

/** A server for which the token is exchanged. */
export interface ExchangeTarget {
  /** Its URL in the settings of the agent. */
  url: string;
  settings: OAuthSettings;
}

/**
 * Exchanges tokens of callers for tokens of servers that agents call (RFC 8693), so that callers need not sign in there. The token of a
 * caller is sent only to its own issuer, and is not stored. The new tokens are stored as a sign-in of the caller.
 */
@Injectable()
export class TokenExchanges {
  private readonly underWay = new Map<string, Promise<void>>();
  private readonly failed = new LRUCache<string, true>({ max: MAX_FAILED, ttl: RETRY_MS });

  constructor(
    private readonly connections: OAuthConnections,
    private readonly signIns: OAuthSignInStore,
    private readonly logger: Logger,
  ) {}

  /**
   * Signs the caller in at a server, unless it is signed in. Resolves after at most `MAX_WAIT_MS`, also without a sign-in. Never rejects: a
   * failure is logged, and the caller can sign in itself.
   */
  async ensureSignedIn(caller: ExchangingCaller, target: ExchangeTarget): Promise<void> {
    const { tenantId, by, subject } = caller;
    const { issuer, credentials } = target.settings;
    // Only the issuer itself may see the token. The author of an agent could name another issuer.
    if (credentials !== 'exchange' || withoutSlash(issuer ?? '') !== withoutSlash(subject.issuer)) return;
    const resource = oauthResource(target.url);
    const exchangeKey = JSON.stringify([tenantId, resource, by.key]);
    if (this.failed.has(exchangeKey)) return;
    let exchange = this.underWay.get(exchangeKey);
    if (!exchange) {
      exchange = this.exchange(caller, resource, target.settings)
        .catch((error: unknown) => {
          this.failed.set(exchangeKey, true);
          const known = error instanceof OAuthFailure ? { reason: messageOf(error) } : { err: error };
          this.logger.warn('the token of a caller was not exchanged', {
            tenantId,
            resource,
            issuer,
            ...known,
          });
        })
        .finally(() => this.underWay.delete(exchangeKey));
      this.underWay.set(exchangeKey, exchange);
    }
    await within(exchange, MAX_WAIT_MS);
  }

  private async exchange(
    { tenantId, by, subject, taskId }: ExchangingCaller,
    resource: string,
    { issuer, clientId = '', clientSecret, scopes, audience }: OAuthSettings,
  ): Promise<void> {
    const key = { tenantId, resource, caller: by.key };
    if (await this.connections.isUsable(key)) return;
    const server = this.connections.serverFor(tenantId);
    const terms = await server.discover(resource, issuer);
    const client = { client_id: clientId };
    const withSecret = await this.connections.withSecret(tenantId, { client, clientSecret, terms });
    const wantedScopes = scopes ?? terms.scopes;
    const tokens = await server.exchangeSubject(terms, withSecret, {
      subject: subject.reveal(),
      audience,
      scope: wantedScopes?.join(' '),
    });
    const { access, refresh } = tokens;
    const content = {
      tokens: { access, ...(refresh !== undefined && { refresh }) },
      scopes: wantedScopes,
      terms,
      client,
      clientSecret,
    };
    const id = uuid();
    const sealed = this.connections.seal(tenantId, id, content, tokens);
    await this.signIns.finish({ ...key, id, createdBy: by.key }, terms.issuer, sealed, by, {
      detail: { exchanged: true },
      continued: taskId,
    });
  }
}
