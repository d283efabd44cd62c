import { parseFields, ProtocolError, SCOPES, SLUG } from '@baton/a2a';
import { COMMAND_LINE } from '@baton/config';
import { type Actor, IssuerStore, type TrustedIssuer } from '@baton/database';
import { IssuerError, JwtService, OAuthConnections, readIssuerKeys } from '@baton/identity';
import { Messaging } from '@baton/messaging';
import { type EgressLists, egressRefusal, failureReason, Outbound } from '@baton/outbound';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import { type OfTenant, TenantSettings } from './tenant-settings.js';

/** The index over issuer, audience and value has entries of at most 2704 bytes. */
const MAX_TEXT = 255;
/** A token of the issuer carries the list through each request. */
const MAX_AGENTS = 100;
/** Each token of the issuer is compared with all rules. */
const MAX_GRANTS = 100;
/** More requests a second than a process can answer. */
const MAX_RATE = 999_999;

const text = z
  .string()
  .min(1, { error: `give a text of 1 to ${MAX_TEXT} characters` })
  .max(MAX_TEXT, { error: `give a text of 1 to ${MAX_TEXT} characters` })
  .refine((value) => !value.includes('\0'), { error: 'must not have the character U+0000' });
const scopes = z.array(z.enum(SCOPES, { error: `choose from ${SCOPES.join(', ')}` })).max(SCOPES.length);
const slug = z.string().regex(SLUG, {
  error: ({ input }) => `"${String(input).slice(0, 100)}" is not the slug of an agent, such as helper`,
});

/** What an operator writes about an issuer. */
export const newIssuer = z.strictObject({
  issuer: z.string(),
  audience: text,
  selector: z.strictObject({ claim: text, value: text }).nullable().default(null),
  jwks_url: z.string().nullable().default(null),
  subject_claim: text.default('sub'),
  scopes: scopes.default(['agents:call']),
  grants: z
    .array(z.strictObject({ claim: text, value: text, scopes: scopes.min(1) }))
    .max(MAX_GRANTS, { error: `give at most ${MAX_GRANTS} rules` })
    .default([]),
  agents: z
    .array(slug)
    .min(1, { error: 'name at least one agent, or give null for all' })
    .max(MAX_AGENTS, { error: `give at most ${MAX_AGENTS} agents` })
    .nullable()
    .default(null),
  requests_per_second: z.int().min(1).max(MAX_RATE).nullable().default(null),
  allow_http: z.boolean().default(false),
  check: z.boolean().default(true),
});

/** The OpenID providers that tenants trust, for operators. */
@Injectable()
export class TrustedIssuers {
  constructor(
    private readonly settings: TenantSettings,
    private readonly issuers: IssuerStore,
    @Inject(Messaging) private readonly messaging: Pick<Messaging, 'publishControl'>,
    @Inject(Outbound) private readonly outbound: Pick<Outbound, 'forTenant'>,
    @Inject(JwtService) private readonly issuersInUse: Pick<JwtService, 'forget'>,
    @Inject(OAuthConnections) private readonly connections: Pick<OAuthConnections, 'revokeDeleted'>,
  ) {}

  /** By issuer and audience, of one tenant or of all. @throws ProtocolError `not-found` */
  async list(tenant?: string): Promise<OfTenant<TrustedIssuer>[]> {
    if (tenant === undefined) return this.settings.named(await this.issuers.list());
    const { id } = await this.settings.find(tenant);
    return (await this.issuers.list(id)).map((issuer) => ({ ...issuer, tenant }));
  }

  /**
   * Trust an issuer from now on. Its keys are read first, unless the request turns this off: a wrong URL would only show
   * when a user is refused.
   * @param document as `newIssuer` reads it
   * @throws ProtocolError `invalid-params`, `not-found`, `conflict` if a token could then select two tenants
   */
  async add(tenant: string, document: unknown, by: Actor): Promise<OfTenant<TrustedIssuer>> {
    const { id: tenantId, egressAllow: allow, egressDeny: deny } = await this.settings.find(tenant);
    const entry = readNewIssuer(document);
    assertAllowed(entry.issuer, { allow, deny }, tenant);
    if (entry.check) await this.assertKeys(tenantId, entry.issuer, { allow, deny });
    const result = await this.issuers.add({ ...entry.issuer, tenantId }, by);
    if ('conflict' in result) {
      const [{ tenant: whose } = { tenant: '' }] = await this.settings.named([result.conflict]);
      throw new ProtocolError('conflict', describeConflict(entry.issuer, result.conflict, whose));
    }
    await this.inform(result.added);
    return { ...result.added, tenant };
  }

  /** No longer trust an issuer. Its tokens are refused from now on, and its users are signed out. @throws ProtocolError `not-found` */
  async remove(tenant: string, id: string, by: Actor): Promise<OfTenant<TrustedIssuer>> {
    const { id: tenantId } = await this.settings.find(tenant);
    const removed = await this.issuers.remove(tenantId, id, by);
    if (!removed) throw new ProtocolError('not-found', 'The tenant trusts no issuer of this id');
    await this.inform(removed.issuer);
    // There may be many, and some authorization servers are slow.
    void this.connections.revokeDeleted(removed.signedOut);
    return { ...removed.issuer, tenant };
  }

  private async assertKeys(tenantId: string, issuer: KeySource, lists: EgressLists): Promise<void> {
    try {
      const calls = this.outbound.forTenant(tenantId, () => Promise.resolve(lists));
      const { keys } = await readIssuerKeys(calls, issuer);
      if (keys.length === 0) throw new IssuerError('it has no keys');
    } catch (error) {
      const reason = error instanceof IssuerError ? error.message : failureReason(error);
      if (reason === undefined) throw error;
      throw ProtocolError.invalidParams(
        'issuer',
        `The keys of ${issuer.issuer} cannot be read: ${reason}. Correct the URL, or add it unseen with "check": false`,
      );
    }
  }

  /** Processes that miss the control message notice within TOKEN_CACHE_MS. */
  private async inform({ tenantId, issuer }: TrustedIssuer): Promise<void> {
    this.issuersInUse.forget(issuer);
    await this.messaging.publishControl({ type: 'issuers-changed', tenantId, issuer }).catch(() => undefined);
  }
}

type IssuerEntry = Omit<TrustedIssuer, 'id' | 'tenantId' | 'createdAt'>;
/** Where the keys are. */
type KeySource = Pick<TrustedIssuer, 'issuer' | 'jwksUrl'>;

/** Throws `invalid-params` if the lists of the tenant block the URL of the keys: its tokens would never be valid. */
function assertAllowed({ issuer, jwksUrl }: KeySource, lists: EgressLists, tenant: string): void {
  const reason = egressRefusal(lists, jwksUrl ?? issuer);
  if (reason === undefined) return;
  const field = jwksUrl === null ? 'issuer' : 'jwks_url';
  throw ProtocolError.invalidParams(field, `${reason}: ${COMMAND_LINE} tenants egress ${tenant} shows it`);
}

function readNewIssuer(document: unknown): { issuer: IssuerEntry; check: boolean } {
  const given = parseFields(newIssuer, document, '', 'the body');
  const issuer = {
    issuer: urlOf('issuer', given.issuer, given.allow_http),
    audience: given.audience,
    selector: given.selector,
    jwksUrl: given.jwks_url === null ? null : urlOf('jwks_url', given.jwks_url, given.allow_http),
    subjectClaim: given.subject_claim,
    scopes: [...new Set(given.scopes)],
    grants: given.grants,
    agents: [...new Set(given.agents)],
    requestsPerSecond: given.requests_per_second,
  };
  return { issuer, check: given.check };
}

/** A URL as it is written, because tokens must have the same text. Throws `invalid-params`. */
function urlOf(field: string, given: string, allowHttp: boolean): string {
  const refuse = (why: string): never => {
    throw ProtocolError.invalidParams(field, why);
  };
  const shown = given.slice(0, 300);
  const url = URL.parse(given);
  if (!url || !['https:', 'http:'].includes(url.protocol) || !/^[\x21-\x7e]{1,1024}$/.test(given)) {
    return refuse(`"${shown}" is not a URL such as https://id.example.com`);
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    return refuse('leave out user name, password, "?" and "#"');
  }
  if (url.protocol === 'http:' && !allowHttp) {
    return refuse(
      `"${shown}" is not encrypted, so others could replace its keys: use https, or "allow_http": true for a test`,
    );
  }
  return given;
}

/** Says which entry is in the way, and what to do. */
function describeConflict(
  { audience, selector, jwksUrl }: IssuerEntry,
  conflict: TrustedIssuer,
  tenant: string,
): string {
  const remove = `or remove the entry ${conflict.id} of the tenant ${tenant}`;
  if (conflict.audience !== audience || conflict.jwksUrl !== jwksUrl) {
    const keys = conflict.jwksUrl === null ? 'without jwks_url' : `with jwks_url ${conflict.jwksUrl}`;
    return `Tenant ${tenant} trusts this issuer ${keys}: give the same, ${remove}`;
  }
  if (conflict.selector && selector?.claim !== conflict.selector.claim) {
    return `Tenant ${tenant} trusts this issuer and audience for tokens with the claim ${conflict.selector.claim}: select a tenant with the same claim ${conflict.selector.claim}=<value>, ${remove}`;
  }
  return `Tenant ${tenant} trusts this issuer and audience already, and a token must select one tenant: use another audience, give each entry another value of the same claim, ${remove}`;
}
