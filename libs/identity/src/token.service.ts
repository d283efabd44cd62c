import { type Principal, ProtocolError, type Scope, tokenPrincipal } from '@baton/a2a';
import { Environment } from '@baton/config';
import { type ApiToken, TokenStore } from '@baton/database';
import { Messaging, TenantCache } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { createHash, randomBytes } from 'node:crypto';

const FORM = /^baton_[A-Za-z0-9_-]{43}$/;
/** Enough to tell a tenant's tokens apart, too little to guess one (222 of 256 bits stay unknown). */
const PREFIX_LENGTH = 'baton_'.length + 6;

const MAX_UNKNOWN = 10_000;
const UNKNOWN_MS = 60_000;

/** Who calls, for which tenant, and what it may do. */
export interface Caller {
  readonly tenantId: string;
  readonly principal: Principal;
  readonly scopes: readonly Scope[];
  /** When its token expires; its open calls end then. Unset: never. */
  readonly expiresAt?: Date | undefined;
  /** By which `TokenService.refused` knows the token, to end its open calls. Unset: it cannot be revoked. */
  readonly credential?: string;
}

export type RefusedToken = 'unknown' | 'expired' | 'revoked';

const REASONS: Record<RefusedToken, string> = {
  unknown: 'the token is not known',
  expired: 'the token has expired',
  revoked: 'the token was revoked',
};

/** The error for a token that is not good. */
export const unauthenticated = (reason: RefusedToken): ProtocolError =>
  new ProtocolError('unauthenticated', REASONS[reason]);

export type Verification = { ok: true; caller: Caller } | { ok: false; reason: RefusedToken };

export interface NewToken {
  tenantId: string;
  name: string;
  scopes: Scope[];
  /** Null: it never expires. */
  expiresAt: Date | null;
}

/**
 * A tenant's bearer tokens: issue, verify, revoke. A revocation is in force everywhere within TOKEN_CACHE_MS, and
 * usually at once, because every process is informed.
 */
@Injectable()
export class TokenService implements OnModuleInit, OnModuleDestroy {
  /** Tokens by the hash of their secret. */
  private readonly cache: TenantCache<ApiToken>;
  /** Hashes that no token has. Nobody can guess a secret that is issued later, so they are good for longer. */
  private readonly unknown = new LRUCache<string, true>({ max: MAX_UNKNOWN, ttl: UNKNOWN_MS });

  constructor(
    private readonly tokens: TokenStore,
    private readonly messaging: Messaging,
    private readonly logger: Logger,
    environment: Environment,
  ) {
    this.cache = new TenantCache(messaging, {
      load: (hash) => tokens.byHash(hash),
      ttlMs: environment.tokenCacheMs,
      staleAfter: (message) => (message.type === 'token-revoked' ? isToken(message.tokenId) : 'none'),
    });
  }

  async onModuleInit(): Promise<void> {
    await this.cache.start();
  }

  onModuleDestroy(): void {
    this.cache.stop();
  }

  /** A new token. Its secret is returned only here: the database stores its SHA-256. */
  async issue({ tenantId, name, scopes, expiresAt }: NewToken): Promise<{ secret: string; token: ApiToken }> {
    const secret = newSecret();
    const hash = hashSecret(secret) ?? '';
    const token = await this.tokens.create({
      tenantId,
      name,
      hash,
      prefix: prefixOf(secret),
      scopes,
      expiresAt,
    });
    return { secret, token };
  }

  /** The holder of a secret, or why it is invalid. Rejects only when the database does not answer. */
  async verify(secret: string): Promise<Verification> {
    const hash = hashSecret(secret);
    if (hash === undefined || this.unknown.has(hash)) return { ok: false, reason: 'unknown' };
    const token = await this.cache.get(hash);
    if (!token) {
      this.unknown.set(hash, true);
      return { ok: false, reason: 'unknown' };
    }
    // On every call: a token may expire while it is cached.
    const reason = refusalOf(token);
    if (reason) return { ok: false, reason };
    const { tenantId, scopes, expiresAt } = token;
    const principal = tokenPrincipal(token.id);
    const expiry = expiresAt && { expiresAt };
    return { ok: true, caller: { tenantId, principal, scopes, ...expiry, credential: hash } };
  }

  /**
   * Those that are no longer good, as the database has it now, and why. One statement, whatever their number.
   * @param credentials of callers (`Caller.credential`)
   */
  async refused(credentials: readonly string[]): Promise<Map<string, RefusedToken>> {
    const tokens = await this.tokens.byHashes(credentials);
    const refused = new Map<string, RefusedToken>();
    for (const credential of credentials) {
      const token = tokens.get(credential);
      const reason = token ? refusalOf(token) : 'unknown';
      if (reason) refused.set(credential, reason);
    }
    if (refused.size > 0) this.cache.forget((hash) => refused.has(hash));
    return refused;
  }

  /** Revokes a token by id or prefix. Undefined if the tenant has no such token. */
  async revoke(tenantId: string, idOrPrefix: string): Promise<ApiToken | undefined> {
    const token = await this.tokens.revoke(tenantId, idOrPrefix);
    if (!token) return undefined;
    this.cache.forget(isToken(token.id));
    try {
      await this.messaging.publishControl({ type: 'token-revoked', tenantId, tokenId: token.id });
    } catch (err) {
      // The revocation still takes effect: no process uses its cache for longer than TOKEN_CACHE_MS.
      this.logger.warn('could not inform other processes of a revoked token', { err, tenantId });
    }
    return token;
  }
}

/** Why a token is not good now. */
function refusalOf({ revokedAt, expiresAt }: ApiToken): RefusedToken | undefined {
  if (revokedAt) return 'revoked';
  return expiresAt && expiresAt.getTime() <= Date.now() ? 'expired' : undefined;
}

const isToken =
  (id: string) =>
  (_hash: string, token: ApiToken | undefined): boolean =>
    token?.id === id;

/** A new secret: `baton_` and the base64url of 32 random bytes. */
const newSecret = (): string => `baton_${randomBytes(32).toString('base64url')}`;

/** The hex SHA-256 under which a secret is stored; undefined if it cannot be a secret of Baton. */
function hashSecret(secret: string): string | undefined {
  return FORM.test(secret) ? createHash('sha256').update(secret).digest('hex') : undefined;
}

/** The first characters, by which a person recognises a token. */
const prefixOf = (secret: string): string => secret.slice(0, PREFIX_LENGTH);
