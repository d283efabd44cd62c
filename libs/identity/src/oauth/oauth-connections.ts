import { Environment } from '@baton/config';
import {
  type Actor,
  type ConnectionCall,
  connectionSecretName,
  oauthClientSecretName,
  type OAuthConnection,
  type OAuthConnectionKey,
  OAuthConnectionStore,
  OAuthSignInStore,
  type PageAfter,
  retryTransient,
  type SealedConnection,
  type SealedSecret,
} from '@baton/database';
import { Outbound } from '@baton/outbound';
import { clock } from '@baton/telemetry';
import { Inject, Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pLimit from 'p-limit';
import { LimitsService } from '../limits.service.js';
import { SecretBox } from '../secret-box.js';
import { Secrets } from '../secrets.js';
import {
  AuthorizationServer,
  type OAuthClientId,
  type OAuthTerms,
  type TokenSet,
} from './authorization-server.js';
import { OAuthFailure } from './oauth-failure.js';

/** How long before their expiry tokens are refreshed, in ms, or after half of their lifetime. */
const EARLY_MS = 30_000;
/** How long one process alone refreshes tokens: longer than the request and the write after it. */
const CLAIM_MS = 60_000;
/** With the request of at most 15 s, a refresh is stored before the claim ends. */
const STORE_MS = 40_000;
/** Maximum scopes of a sign-in, so that a server does not ask for others for ever. */
const MAX_SCOPES = 100;
/** Sign-ins that are revoked at the same time. */
const MAX_REVOCATIONS = 4;
/** Between two reads of tokens that another process refreshes. */
const PAUSE_MS = 100;

/** The content of a connection. */
export interface ConnectionContent {
  tokens: Pick<TokenSet, 'access' | 'refresh'>;
  /** The scopes that the sign-in has asked for. Unset: unknown, or stored by a release up to 0.2. */
  scopes?: string[] | undefined;
  terms: OAuthTerms;
  /** Without `client_secret` if a secret has it. */
  client: OAuthClientId;
  /** Name of the secret with the password of the client. */
  clientSecret?: string | undefined;
}

/** A connection as people see it. */
export interface ListedConnection extends OAuthConnection {
  /** When its access token expires; null = it does not say, or the sign-in is over. */
  expiresAt: Date | null;
  /** Whether Baton can refresh the access token; null = not known. */
  isRefreshable: boolean | null;
}

/**
 * The sign-ins of tenants and their callers at servers that agents call: a vault of tokens. Access tokens are refreshed before they
 * expire, by one process at a time, because many authorization servers take the second use of a refresh token for a theft.
 */
@Injectable()
export class OAuthConnections {
  private readonly box: SecretBox;
  private readonly refresher = randomUUID();

  constructor(
    private readonly store: OAuthConnectionStore,
    private readonly signIns: OAuthSignInStore,
    private readonly secrets: Secrets,
    private readonly outbound: Outbound,
    private readonly limits: LimitsService,
    @Inject(Environment) environment: Pick<Environment, 'masterKey' | 'previousMasterKeys'>,
  ) {
    this.box = new SecretBox(environment);
  }

  /**
   * An access token. It must never be shown.
   * @param refused the server has refused this one: it is replaced, and the sign-in is over if it cannot be
   * @returns undefined: there is no sign-in
   * @throws OAuthFailure if it has to be refreshed, and cannot be for now
   */
  async token(key: OAuthConnectionKey, refused?: string): Promise<string | undefined> {
    for (;;) {
      const connection = await this.store.find(key);
      if (!connection || connection.ended !== null) return undefined;
      const content = this.open(connection);
      const { access, refresh } = content.tokens;
      const isRefused = access === refused;
      const isDue = connection.refreshAt !== null && connection.refreshAt.getTime() <= clock.now();
      if (!isRefused && !isDue) return access;
      if (refresh === undefined) {
        // After that time a token should be refreshed. The server may still accept it.
        if (!isRefused) return access;
        await this.store.end(
          connection,
          'the server refuses the access token, and there is no refresh token',
        );
      } else if (await this.store.claimRefresh(connection, this.refresher, CLAIM_MS)) {
        await this.refresh(connection, content, refresh);
        refused = undefined;
      } else await delay(PAUSE_MS);
    }
  }

  /**
   * The server requires more scopes for a request than a token has.
   * @returns another token that is there by now, or all scopes to ask for: those that the sign-in has and has asked for, and these.
   * Undefined: it has asked for these already, or they are too many
   */
  async wider(
    key: OAuthConnectionKey,
    refused: string,
    asked: readonly string[],
  ): Promise<{ token: string } | { scopes: string[] } | undefined> {
    const connection = await this.store.find(key);
    if (!connection || connection.ended !== null) return { scopes: [...asked] };
    const { tokens, scopes = [] } = this.open(connection);
    if (tokens.access !== refused) return { token: tokens.access };
    const known = new Set([...(connection.scope?.split(' ').filter(Boolean) ?? []), ...scopes]);
    if (asked.every((scope) => known.has(scope))) return undefined;
    const all = [...new Set([...known, ...asked])];
    return all.length > MAX_SCOPES ? undefined : { scopes: all };
  }

  /** Whether a sign-in gives tokens for now: it is not over, and its token is not due or can be refreshed. */
  async isUsable(key: OAuthConnectionKey): Promise<boolean> {
    const connection = await this.store.find(key);
    if (!connection || connection.ended !== null) return false;
    const { refreshAt } = connection;
    const isDue = refreshAt !== null && refreshAt.getTime() <= clock.now();
    return !isDue || this.isRefreshable(connection) !== false;
  }

  /** Records that an agent is about to make a call with a sign-in. @returns false: there is no sign-in */
  noteCall(key: OAuthConnectionKey, call: ConnectionCall): Promise<boolean> {
    return this.store.noteCall(key, call);
  }

  /** The server has refused a token that was just refreshed: the sign-in is over. */
  async refuse(key: OAuthConnectionKey, refused: string): Promise<void> {
    const connection = await this.store.find(key);
    if (!connection || connection.ended !== null || this.open(connection).tokens.access !== refused) return;
    await this.store.end(connection, 'the server refuses a new access token');
  }

  /** In the order of their ids, without tokens. */
  async list(tenantId: string, page: PageAfter): Promise<ListedConnection[]> {
    return (await this.store.list(tenantId, page)).map((stored) => {
      const { sealed: _, ...connection } = stored;
      return { ...connection, expiresAt: expiryOf(stored), isRefreshable: this.isRefreshable(stored) };
    });
  }

  /** Signs out: the tokens are deleted here, and revoked at the authorization server if it answers. @returns false: there is no such sign-in */
  async signOut(tenantId: string, id: string, by: Actor): Promise<boolean> {
    const connection = await this.store.remove(tenantId, id, by);
    if (!connection) return false;
    await this.revoke(connection).catch(() => undefined);
    return true;
  }

  /** Revokes the tokens of deleted sign-ins at their authorization servers, as far as these answer. Never rejects. */
  async revokeDeleted(connections: readonly SealedConnection[]): Promise<void> {
    const limit = pLimit(MAX_REVOCATIONS);
    await Promise.all(
      connections.map((connection) => limit(() => this.revoke(connection).catch(() => undefined))),
    );
  }

  /** The authorization servers of a tenant. */
  serverFor(tenantId: string): AuthorizationServer {
    const egress = () => this.limits.egress(tenantId);
    const isReachable = async (url: URL) => this.outbound.assertReachable(url, tenantId, await egress());
    return new AuthorizationServer(this.outbound.forTenant(tenantId, egress), isReachable);
  }

  /** The client with the password that a secret has. */
  async withSecret(
    tenantId: string,
    { client, clientSecret, terms }: Pick<ConnectionContent, 'client' | 'clientSecret' | 'terms'>,
  ): Promise<OAuthClientId> {
    if (clientSecret === undefined) return client;
    const { origin } = new URL(terms.tokenEndpoint);
    const found = (await this.secrets.get(tenantId, clientSecret, [origin]))?.trim();
    if (found === undefined)
      throw new OAuthFailure('unusable', `the secret "${clientSecret}" of the client does not exist`);
    return { ...client, client_secret: found };
  }

  /** Tokens as they are stored. */
  seal(tenantId: string, id: string, content: ConnectionContent, { scope, expiresIn }: TokenSet) {
    const sealed = this.box.seal({ tenantId, name: connectionSecretName(id) }, JSON.stringify(content));
    return { sealed, scope: scope ?? null, refreshAt: refreshTime(expiresIn) };
  }

  /** Encrypts what the secrets of a tenant are encrypted with. */
  sealValue(tenantId: string, name: string, value: string): SealedSecret {
    return this.box.seal({ tenantId, name }, value);
  }

  openValue(tenantId: string, name: string, sealed: SealedSecret): string {
    return this.box.open({ tenantId, name }, sealed);
  }

  /** Call it with the claim. It is not stopped with the turn that needs the token: the answer has the only valid refresh token. */
  private async refresh(
    connection: SealedConnection,
    content: ConnectionContent,
    refreshToken: string,
  ): Promise<void> {
    const { tenantId, id } = connection;
    let tokens: TokenSet;
    try {
      const client = await this.withSecret(tenantId, content);
      tokens = await this.serverFor(tenantId).refresh(content.terms, client, refreshToken);
    } catch (error) {
      await this.giveUp(connection, content, error);
      return;
    }
    const { refresh = refreshToken } = tokens;
    const scope = tokens.scope ?? connection.scope;
    const renewed = { ...content, tokens: { access: tokens.access, refresh } };
    const next = this.seal(tenantId, id, renewed, { ...tokens, ...(scope !== null && { scope }) });
    const signal = AbortSignal.timeout(STORE_MS);
    await retryTransient(() => this.store.storeRefreshed(connection, this.refresher, next), { signal });
  }

  /** Ends the sign-in if the refresh was refused; throws otherwise. */
  private async giveUp(
    connection: SealedConnection,
    { client, clientSecret, terms }: ConnectionContent,
    error: unknown,
  ): Promise<void> {
    const code = error instanceof OAuthFailure ? error.code : undefined;
    const isForgotten =
      clientSecret === undefined && (code === 'invalid_client' || code === 'unauthorized_client');
    if (code === 'invalid_grant' || isForgotten) {
      if (isForgotten) await this.forgetClient(connection.tenantId, terms.issuer, client);
      await this.store.end(connection, `the refresh was refused: ${(error as OAuthFailure).message}`);
      return;
    }
    await this.store.releaseRefresh(connection, this.refresher);
    throw error;
  }

  /** The authorization server has forgotten a registered client: the next sign-in registers another one. */
  private async forgetClient(tenantId: string, issuer: string, { client_id }: OAuthClientId): Promise<void> {
    const stored = await this.storedClient(tenantId, issuer);
    if (stored?.client.client_id === client_id) await this.signIns.forgetClient(tenantId, issuer);
  }

  async storedClient(
    tenantId: string,
    issuer: string,
  ): Promise<{ redirectUri: string; client: OAuthClientId } | undefined> {
    const found = await this.signIns.findClient(tenantId, issuer);
    if (!found) return undefined;
    const client = JSON.parse(
      this.openValue(tenantId, oauthClientSecretName(issuer), found),
    ) as OAuthClientId;
    return { redirectUri: found.redirectUri, client };
  }

  private async revoke(connection: SealedConnection): Promise<void> {
    const content = this.open(connection);
    const { tokens, terms } = content;
    const server = this.serverFor(connection.tenantId);
    const client = await this.withSecret(connection.tenantId, content);
    if (tokens.refresh !== undefined)
      await server.revoke(terms, client, { token: tokens.refresh, hint: 'refresh_token' });
    await server.revoke(terms, client, { token: tokens.access, hint: 'access_token' });
  }

  /** Null: the tokens cannot be read with the master key of this process. */
  private isRefreshable(connection: SealedConnection): boolean | null {
    try {
      return this.open(connection).tokens.refresh !== undefined;
    } catch {
      return null;
    }
  }

  private open({ tenantId, id, sealed }: SealedConnection): ConnectionContent {
    return JSON.parse(
      this.box.open({ tenantId, name: connectionSecretName(id) }, sealed),
    ) as ConnectionContent;
  }
}

function refreshTime(expiresIn: number | undefined): Date | null {
  if (expiresIn === undefined) return null;
  const lifetime = expiresIn * 1000;
  return new Date(clock.now() + Math.max(lifetime - EARLY_MS, lifetime / 2));
}

/** The inverse of `refreshTime`: tokens are stored as they come, so `updatedAt` is when their time began. */
function expiryOf({ refreshAt, updatedAt, ended }: OAuthConnection): Date | null {
  if (refreshAt === null || ended !== null) return null;
  const waited = Math.max(0, refreshAt.getTime() - updatedAt.getTime());
  return new Date(refreshAt.getTime() + Math.min(EARLY_MS, waited));
}
