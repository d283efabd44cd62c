import { tokenPrincipal } from '@baton/a2a';
import { Environment } from '@baton/config';
import {
  type Actor,
  type ApiToken,
  type FoundToken,
  type TokenPosition,
  type TokenRights,
  TokenStore,
} from '@baton/database';
import { GroupedReads, Messaging, TenantCache } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { hash, randomBytes } from 'node:crypto';
import { explainLimit } from './explain-limit.js';
import type { Caller } from './caller.js';
import { refusalOf, type RefusedToken } from './token-state.js';
import { TokenUses } from './token-uses.js';

const FORM = /^baton_[A-Za-z0-9_-]{43}$/;
/** Three parts in base64url (RFC 7515 §7.1). No token of Baton has a dot. */
const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;
/** Characters of a secret that are shown: enough to distinguish a tenant's tokens, too few to guess one (222 of 256 bits stay unknown). */
const PREFIX_LENGTH = 'baton_'.length + 6;

/** Maximum length of a token's list of agents, each of which is looked up for a request. */
export const MAX_TOKEN_AGENTS = 100;
/** More than an installation answers: it stands for no limit. */
export const MAX_TOKEN_REQUESTS_PER_SECOND = 100_000;

/** Maximum number of unknown hashes that a process caches. */
const MAX_UNKNOWN = 10_000;
/** How long a process caches an unknown hash, in ms. A repeated invalid token costs one read a minute. */
const UNKNOWN_MS = 60_000;

/** Whether a bearer token has the form of a JWT. */
export const isJwt = (token: string): boolean => JWT.test(token);

/** The owner of the refused token. */
export type Holder = Pick<Caller, 'tenantId' | 'principal'>;
export type Verification =
  | { ok: true; caller: Caller }
  | { ok: false; reason: RefusedToken; holder?: Holder };

export interface NewToken extends Pick<TokenRights, 'name' | 'scopes' | 'expiresAt'> {
  tenantId: string;
  /** Unset: all. */
  agents?: string[];
  /** Unset: no limit but that of the tenant. */
  requestsPerSecond?: number | null;
}

/** A token, and its secret, which is never shown again. */
export interface IssuedToken {
  secret: string;
  token: ApiToken;
}

/**
 * A tenant's bearer tokens: issue, verify, change, rotate, revoke. A change is in force everywhere within TOKEN_CACHE_MS,
 * and usually at once, because every process is informed.
 */
@Injectable()
export class TokenService implements OnModuleInit, OnModuleDestroy {
  /** Tokens by the hash of their secret. */
  private readonly cache: TenantCache<FoundToken>;
  /** Hashes that no token has. A secret that is issued later cannot be guessed before, so these entries are kept longer. */
  private readonly unknown = new LRUCache<string, true>({
    maxSize: MAX_UNKNOWN,
    sizeCalculation: () => 1,
    ttl: UNKNOWN_MS,
  });
  private readonly uses: TokenUses;

  constructor(
    private readonly tokens: TokenStore,
    private readonly messaging: Messaging,
    private readonly logger: Logger,
    environment: Environment,
  ) {
    this.uses = new TokenUses(tokens, logger);
    const reads = new GroupedReads((hashes) => tokens.byHashes(hashes));
    this.cache = new TenantCache(messaging, {
      load: (hash) => reads.read(hash),
      ttlMs: environment.tokenCacheMs,
      staleAfter: (message) => (message.type === 'token-revoked' ? isToken(message.tokenId) : 'none'),
    });
  }

  async onModuleInit(): Promise<void> {
    await this.cache.start();
  }

  async onModuleDestroy(): Promise<void> {
    this.cache.stop();
    await this.uses.flush();
  }

  /**
   * A new token. Its secret is returned only here: the database stores its SHA-256.
   * @throws ProtocolError `limit-exceeded` if the tenant has as many as it may have
   */
  async issue(issued: NewToken, by: Actor): Promise<IssuedToken> {
    const { secret, stored } = newSecret();
    const rights = { agents: [], requestsPerSecond: null, ...issued };
    const token = await this.tokens.create({ ...rights, ...stored }, by).catch(explainLimit);
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
    if (reason) {
      return { ok: false, reason, holder: { tenantId: token.tenantId, principal: tokenPrincipal(token.id) } };
    }
    this.uses.note(token);
    return { ok: true, caller: callerWith(token, hash) };
  }

  /**
   * The callers whose token is no longer valid in the database, and why. It reads the database in one statement, or not at all if no
   * caller has a token that can be revoked.
   */
  async refused(callers: readonly Caller[]): Promise<Map<Caller, RefusedToken>> {
    const credentials = new Set(callers.flatMap(({ credential }) => credential ?? []));
    const refused = new Map<Caller, RefusedToken>();
    if (credentials.size === 0) return refused;
    const tokens = await this.tokens.byHashes([...credentials]);
    const stale = new Set<string>();
    for (const caller of callers) {
      const { credential } = caller;
      if (credential === undefined) continue;
      const token = tokens.get(credential);
      const reason = token ? (refusalOf(token) ?? narrowed(caller, token)) : 'unknown';
      if (!reason) continue;
      refused.set(caller, reason);
      stale.add(credential);
    }
    if (stale.size > 0) this.cache.forget((hash) => stale.has(hash));
    return refused;
  }

  /** The tokens of a tenant, also invalid ones, the newest first. @param page unset = all */
  async list(
    tenantId: string,
    page?: { limit: number; after?: TokenPosition | undefined },
  ): Promise<ApiToken[]> {
    return this.tokens.list(tenantId, page);
  }

  /** By id or prefix. */
  async find(tenantId: string, idOrPrefix: string): Promise<ApiToken | undefined> {
    return this.tokens.find(tenantId, idOrPrefix);
  }

  /** Changes what a token may do. Undefined if the tenant has no such token, or it was revoked. */
  async change(
    tenantId: string,
    id: string,
    rights: Partial<TokenRights>,
    by: Actor,
  ): Promise<ApiToken | undefined> {
    const token = await this.tokens.change(tenantId, id, rights, by);
    if (token) await this.announce(token);
    return token;
  }

  /**
   * Gives a token a new secret. It stays the same principal, so its tasks and the ids that it has chosen continue. The present secret
   * stays valid for a while. An earlier one ends.
   * @param overlapMs how long, but no longer than the token was to be valid
   * @param expiresAt when the token expires from now on; unset = as before
   * @returns undefined if the tenant has no such token, or it was revoked
   */
  async rotate(
    tenantId: string,
    id: string,
    { overlapMs, expiresAt }: { overlapMs: number; expiresAt?: Date | null },
    by: Actor,
  ): Promise<IssuedToken | undefined> {
    const { secret, stored } = newSecret();
    const token = await this.tokens.rotate(tenantId, id, stored, { overlapMs, expiresAt }, by);
    if (!token) return undefined;
    await this.announce(token);
    return { secret, token };
  }

  /** Revokes a token by id or prefix. Undefined if the tenant has no such token. */
  async revoke(tenantId: string, idOrPrefix: string, by: Actor): Promise<ApiToken | undefined> {
    const token = await this.tokens.revoke(tenantId, idOrPrefix, by);
    if (token) await this.announce(token);
    return token;
  }

  /** Every process reads the token again. */
  private async announce({ tenantId, id }: ApiToken): Promise<void> {
    this.cache.forget(isToken(id));
    try {
      await this.messaging.publishControl({ type: 'token-revoked', tenantId, tokenId: id });
    } catch (err) {
      // The change still takes effect: no process uses its cache for longer than TOKEN_CACHE_MS.
      this.logger.warn('could not inform other processes of a changed token', { err, tenantId });
    }
  }
}

function callerWith(token: FoundToken, hash: string): Caller {
  const { tenantId, id, scopes, agents, requestsPerSecond } = token;
  const expiresAt = endOf(token);
  return {
    tenantId,
    scopes,
    principal: tokenPrincipal(id),
    credential: hash,
    ...(expiresAt && { expiresAt }),
    ...(agents.length > 0 && { agents: { slugs: agents, ids: [] } }),
    ...(requestsPerSecond !== null && { requestsPerSecond }),
  };
}

/** When the secret becomes invalid. */
function endOf({ expiresAt, secretUntil }: Pick<FoundToken, 'expiresAt' | 'secretUntil'>): Date | undefined {
  if (!expiresAt || !secretUntil) return secretUntil ?? expiresAt ?? undefined;
  return secretUntil < expiresAt ? secretUntil : expiresAt;
}

/** Whether a token may do less than it could when the call began. */
function narrowed({ scopes, agents }: Caller, token: ApiToken): RefusedToken | undefined {
  const keepsScopes = token.scopes.includes('admin') || scopes.every((scope) => token.scopes.includes(scope));
  const hasAllAgents = token.agents.length === 0;
  const keepsAgents = hasAllAgents || agents?.slugs.every((slug) => token.agents.includes(slug));
  return keepsScopes && keepsAgents ? undefined : 'changed';
}

const isToken =
  (id: string) =>
  (_hash: string, token: FoundToken | undefined): boolean =>
    token?.id === id;

/** A new secret: `baton_` and the base64url of 32 random bytes; and what is stored of it. */
function newSecret(): { secret: string; stored: { hash: string; prefix: string } } {
  const secret = `baton_${randomBytes(32).toString('base64url')}`;
  return { secret, stored: { hash: hashOf(secret), prefix: secret.slice(0, PREFIX_LENGTH) } };
}

const hashOf = (secret: string): string => hash('sha256', secret, 'hex');

/** The hex SHA-256 under which a secret is stored; undefined if it cannot be a secret of Baton. */
const hashSecret = (secret: string): string | undefined => (FORM.test(secret) ? hashOf(secret) : undefined);
