import { ProtocolError } from '@baton/a2a';
import { Environment } from '@baton/config';
import { IssuerStore, type TrustedIssuer } from '@baton/database';
import { Messaging, TenantCache } from '@baton/messaging';
import { type EgressLists, Outbound, failureReason } from '@baton/outbound';
import { clock, Logger } from '@baton/telemetry';
import { Inject, Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import {
  type JWTPayload,
  type ProtectedHeaderParameters,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  jwtVerify,
} from 'jose';
import { LRUCache } from 'lru-cache';
import { LimitsService } from '../limits.service.js';
import type { RefusedToken } from '../token-state.js';
import type { Caller } from '../caller.js';
import { hasValue, scopesOf, userPrincipal } from './claims.js';
import { IssuerKeys } from './issuer-keys.js';
import { readIssuerKeys } from './read-issuer-keys.js';
import { IssuerError } from './issuer-error.js';

/** Half of the 16 KiB that Node.js takes of all headers. Tokens with many groups have about 4 KiB. */
const MAX_LENGTH = 8192;
/** What can be the URL of an issuer. Postgres refuses U+0000 in a text. */
const ISSUER = /^[\x21-\x7e]{1,2048}$/;
/** Signatures with a private key. With a shared secret (HS256), every party that checks tokens can make them. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];
/** A header without `typ` is that of a JWT. Others are of tokens for other purposes, such as `logout+jwt`. */
const TYPES: ReadonlySet<string> = new Set(['jwt', 'at+jwt', 'application/jwt', 'application/at+jwt']);
/** How far the clock of an issuer may be ahead. If it is behind, its tokens expire a little too early. */
const TOLERANCE_SECONDS = 30;
/** Issuers whose keys are kept: some kilobytes each. */
const MAX_ISSUERS = 1_000;
/** Maximum number of users that a process keeps as noted. */
const MAX_USERS = 50_000;
/** The largest number of seconds that is a time. */
const MAX_TIME = 8.64e12;

/** The same message for every fault before the signature is verified, so that a caller cannot find out which issuers are trusted. */
const UNTRUSTED = 'the token is not signed by an issuer that is trusted here';

const EXPIRED = 'the token has expired';

/**
 * Verifies access tokens of the issuers that tenants trust (JWTs, RFC 7519 and RFC 9068). Issuers are set by operators:
 * `baton issuers`. A change takes effect at once, because every process is informed; at the latest after TOKEN_CACHE_MS.
 */
@Injectable()
export class JwtService implements OnModuleInit, OnModuleDestroy {
  /** What tenants trust, by the URL of the issuer. */
  private readonly cache: TenantCache<TrustedIssuer[]>;
  private readonly keys = new LRUCache<string, IssuerKeys>({ max: MAX_ISSUERS });
  /** Users that are noted, by issuer and key. */
  private readonly noted = new LRUCache<string, true>({ max: MAX_USERS });

  constructor(
    private readonly store: IssuerStore,
    messaging: Messaging,
    private readonly outbound: Outbound,
    private readonly logger: Logger,
    environment: Environment,
    @Inject(LimitsService) private readonly limits: Pick<LimitsService, 'egress'>,
  ) {
    this.cache = new TenantCache<TrustedIssuer[]>(messaging, {
      load: async (issuer) => {
        const found = await store.byIssuer(issuer);
        return found.length > 0 ? found : undefined;
      },
      ttlMs: environment.tokenCacheMs,
      staleAfter: (message) =>
        message.type === 'issuers-changed' ? (issuer) => issuer === message.issuer : 'none',
    });
  }

  async onModuleInit(): Promise<void> {
    await this.cache.start();
  }

  onModuleDestroy(): void {
    this.cache.stop();
  }

  /**
   * The user of a token. Throws ProtocolError: `unauthenticated` with the reason, or `unavailable` if the keys of the issuer
   * cannot be read. Rejects as the database does if it does not answer.
   */
  async verify(token: string): Promise<Caller> {
    const unverified = unverifiedClaims(token);
    const trusted = await this.cache.get(unverified.iss);
    const [first] = trusted ?? [];
    if (!trusted || !first) throw refused(UNTRUSTED);
    // The tenant that the token seems to be for decides by its lists whether the keys may be read. Others do not suffer.
    const claims = await this.verified(token, trusted.find((row) => isFor(row, unverified)) ?? first);
    const selected = trusted.filter((row) => isFor(row, claims));
    const [row] = selected;
    if (!row) throw refused('no tenant accepts the audience (aud) of the token');
    if (selected.length > 1)
      throw refused('the token is for several tenants or audiences that are trusted here');
    const caller = callerOf(row, claims);
    await this.noteUser(row, caller.principal.key);
    return caller;
  }

  /** Read the entries of an issuer again: this process has changed one, and its own notification may arrive after the next request. */
  forget(issuer: string): void {
    this.cache.forget((key) => key === issuer);
  }

  /** The callers whose issuer is no longer trusted. */
  async refused(callers: readonly Caller[]): Promise<Map<Caller, RefusedToken>> {
    const refused = new Map<Caller, RefusedToken>();
    for (const caller of callers) {
      const { issuer } = caller;
      if (!issuer) continue;
      const trusted = await this.cache.get(issuer.url);
      if (!trusted?.some(({ id }) => id === issuer.id)) refused.set(caller, 'untrusted');
    }
    return refused;
  }

  /** Stores the issuer of a user, so that the sign-ins of the user are deleted with the issuer. An error does not fail the call. */
  private async noteUser(row: TrustedIssuer, user: string): Promise<void> {
    const key = `${row.id} ${user}`;
    if (this.noted.has(key)) return;
    try {
      await this.store.noteUser(row, user);
      this.noted.set(key, true);
    } catch (error) {
      this.logger.debug('could not note a user of an issuer', { tenantId: row.tenantId, err: error });
    }
  }

  /** The claims of a token with a valid signature, issuer and times. */
  private async verified(token: string, row: TrustedIssuer): Promise<JWTPayload> {
    const keys = this.keysOf(row, await this.limits.egress(row.tenantId));
    try {
      const { payload } = await jwtVerify(token, keys.find, {
        algorithms: ALGORITHMS,
        issuer: row.issuer,
        clockTolerance: TOLERANCE_SECONDS,
        currentDate: clock.date(),
        requiredClaims: ['exp', 'aud'],
      });
      return payload;
    } catch (error) {
      throw error instanceof errors.JOSEError ? refused(refusalReason(error)) : error;
    }
  }

  /** All rows of an issuer have the same keys (`IssuerStore.add`), which tenants with the same lists share. */
  private keysOf({ issuer, jwksUrl }: TrustedIssuer, lists: EgressLists): IssuerKeys {
    const name = JSON.stringify([issuer, jwksUrl, lists.allow, lists.deny]);
    let keys = this.keys.get(name);
    if (!keys) {
      const onFailure = (error: unknown): void => {
        const reason = error instanceof IssuerError ? error.message : failureReason(error);
        this.logger.warn('could not read the keys of an issuer', {
          issuer,
          reason,
          err: reason ? undefined : error,
        });
      };
      // Several tenants wait for these keys, so that no single tenant's share may delay them.
      const outbound = this.outbound.forTenant(`issuer ${issuer}`, () => Promise.resolve(lists));
      keys = new IssuerKeys(() => readIssuerKeys(outbound, { issuer, jwksUrl }), onFailure);
      this.keys.set(name, keys);
    }
    return keys;
  }
}

const refused = (reason: string): ProtocolError => new ProtocolError('unauthenticated', reason);

/** The claims of the token. They are not verified. Only the form of the token is: it has an issuer, and a supported algorithm. */
function unverifiedClaims(token: string): JWTPayload & { iss: string } {
  if (token.length > MAX_LENGTH) throw refused(`the token has more than ${String(MAX_LENGTH)} characters`);
  let header: ProtectedHeaderParameters;
  let claims: JWTPayload;
  try {
    header = decodeProtectedHeader(token);
    claims = decodeJwt(token);
  } catch {
    throw refused('the token is not a JWT');
  }
  const { alg, typ, crit } = header;
  if (!ALGORITHMS.includes(alg ?? '')) {
    throw refused(`the algorithm (alg) of the token must be one of ${ALGORITHMS.join(', ')}`);
  }
  if (typ !== undefined && (typeof typ !== 'string' || !TYPES.has(typ.toLowerCase()))) {
    throw refused('the type (typ) of the token is not that of an access token');
  }
  if (crit !== undefined) throw refused('the token has the header crit, which is not supported');
  const { iss } = claims;
  if (typeof iss !== 'string' || !ISSUER.test(iss)) throw refused('the token has no issuer (iss)');
  return { ...claims, iss };
}

/** Why a token is refused. The reason has details only if the signature is valid. */
function refusalReason(error: errors.JOSEError): string {
  if (error instanceof errors.JWTExpired) return EXPIRED;
  if (error instanceof errors.JWTClaimValidationFailed) {
    const { claim, reason } = error;
    if (claim === 'nbf' && reason === 'check_failed') return 'the token is not valid yet (nbf)';
    return `the token has no valid ${claim}`;
  }
  return UNTRUSTED;
}

/** Whether a token is meant for the tenant of the row. */
function isFor({ audience, selector }: TrustedIssuer, claims: JWTPayload): boolean {
  return hasValue(claims, 'aud', audience) && (!selector || hasValue(claims, selector.claim, selector.value));
}

function callerOf(row: TrustedIssuer, claims: JWTPayload): Caller {
  // Keycloak: `Bearer` is an access token; `ID` and `Refresh` are not for servers like this one.
  if (claims.typ !== undefined && claims.typ !== 'Bearer') {
    throw refused('the claim typ of the token is not Bearer: send an access token');
  }
  if (claims.cnf !== undefined) {
    throw refused('the token is bound to a key (cnf): send a bearer token');
  }
  const principal = userPrincipal(row, claims);
  if (!principal) throw refused('the token has no subject');
  const { exp = 0 } = claims;
  if (exp > MAX_TIME) throw refused('the token has no valid exp');
  const expiresAt = new Date(exp * 1000);
  if (expiresAt.getTime() <= clock.now()) throw refused(EXPIRED);
  return {
    tenantId: row.tenantId,
    principal,
    scopes: scopesOf(row, claims),
    expiresAt,
    issuer: { url: row.issuer, id: row.id },
    ...(row.agents.length > 0 && { agents: { slugs: row.agents, ids: [] } }),
    ...(row.requestsPerSecond !== null && { requestsPerSecond: row.requestsPerSecond }),
  };
}
