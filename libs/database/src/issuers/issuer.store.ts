import { isUuid, type Scope } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { type Actor } from '../audit/audit-records.js';
import { CatalogClient, transactionOf } from '../connection/catalog-client.js';
import type { Statement } from '../connection/database.js';
import type { Issuer as IssuerRow } from '../generated/client.js';
import type { SealedConnection } from '../oauth/oauth-connection-records.js';
import { signOutUsers } from '../oauth/sign-out-users.js';
import type { ClaimGrant, TrustedIssuer } from '../tenants/tenant-records.js';

/** An issuer that is no longer trusted. */
export interface RemovedIssuer {
  issuer: TrustedIssuer;
  /** The deleted sign-ins of its users. */
  signedOut: SealedConnection[];
}

/** $1 tenant $2 entry of the issuer $3 key of the principal */
const NOTE_USER: Statement = {
  name: 'issuer-note-user',
  text: `
INSERT INTO issuer_users (tenant_id, issuer_id, caller)
SELECT tenant_id, id, $3 FROM issuers WHERE tenant_id = $1::uuid AND id = $2::uuid
ON CONFLICT DO NOTHING`,
};

/** The issuers that tenants trust. */
@Injectable()
export class IssuerStore {
  constructor(private readonly catalog: CatalogClient) {}

  /**
   * Adds an issuer, unless one of its tokens could then match two rows, or its keys would come from two URLs.
   * @returns the stored row, or the existing row that conflicts with it
   */
  async add(
    issuer: Omit<TrustedIssuer, 'id' | 'createdAt'>,
    by: Actor,
  ): Promise<{ added: TrustedIssuer } | { conflict: TrustedIssuer }> {
    const { selector, grants, ...rest } = issuer;
    const { claim: tenantClaim, value: tenantValue } = selector ?? NO_SELECTOR;
    const { issuer: url, audience, jwksUrl } = issuer;
    const sameAudience = { audience, OR: [{ tenantClaim: { not: tenantClaim } }, { tenantValue }] };
    const otherKeys = jwksUrl === null ? { NOT: { jwksUrl: null } } : otherUrl(jwksUrl);
    return this.catalog.changeAcross(rest.tenantId, async (prisma, record) => {
      // One at a time for an issuer, so that each transaction sees the rows of the others.
      await prisma.$executeRaw`SELECT pg_advisory_xact_lock(hashtextextended(${`issuers ${url}`}, 0))`;
      const conflict = await prisma.issuer.findFirst({
        where: { issuer: url, OR: [sameAudience, otherKeys] },
      });
      if (conflict) return { conflict: issuerOf(conflict) };
      const data = { ...rest, tenantClaim, tenantValue, grants: grants.map((grant) => ({ ...grant })) };
      const added = issuerOf(await prisma.issuer.create({ data }));
      await record({ action: 'issuer.add', target: targetOf(added), by, detail: detailOf(added) });
      return { added };
    });
  }

  /** All rows of an issuer, of any tenant. */
  async byIssuer(issuer: string): Promise<TrustedIssuer[]> {
    const rows = await this.catalog.run((prisma) => prisma.issuer.findMany({ where: { issuer } }));
    return rows.map(issuerOf);
  }

  /** By issuer and audience; of one tenant, or of all. */
  async list(tenantId?: string): Promise<TrustedIssuer[]> {
    const order = [{ issuer: 'asc' }, { audience: 'asc' }, { tenantValue: 'asc' }] as const;
    const where = tenantId === undefined ? {} : { tenantId };
    const rows = await this.catalog.run((prisma) => prisma.issuer.findMany({ where, orderBy: [...order] }));
    return rows.map(issuerOf);
  }

  /** The URLs of a tenant's issuers, each once. @param tenantId unset: the only tenant of the installation; none if there are more */
  async urls(tenantId?: string): Promise<string[]> {
    return this.catalog.run(async (prisma) => {
      const tenants =
        tenantId === undefined
          ? await prisma.tenant.findMany({ select: { id: true }, take: 2 })
          : [{ id: tenantId }];
      const [only] = tenants;
      if (!only || tenants.length > 1) return [];
      const rows = await prisma.issuer.findMany({ where: { tenantId: only.id }, orderBy: { issuer: 'asc' } });
      return [...new Set(rows.map(({ issuer }) => issuer))];
    });
  }

  /**
   * Notes that a principal is a user of an issuer. Nothing is noted if the issuer is gone.
   * @param caller key of the principal
   */
  async noteUser({ tenantId, id }: Pick<TrustedIssuer, 'tenantId' | 'id'>, caller: string): Promise<void> {
    await this.catalog.queryInTenant(tenantId, NOTE_USER, [tenantId, id, caller]);
  }

  /** The sign-ins of its users are deleted with it. Undefined: the tenant has no such issuer. */
  async remove(tenantId: string, id: string, by: Actor): Promise<RemovedIssuer | undefined> {
    if (!isUuid(id)) return undefined;
    return this.catalog.change(tenantId, async (prisma, record) => {
      const signedOut = await signOutUsers(transactionOf(prisma), tenantId, id);
      const found = await prisma.issuer.findUnique({ where: { tenantId_id: { tenantId, id } } });
      const { count } = await prisma.issuer.deleteMany({ where: { tenantId, id } });
      if (!found || count === 0) return undefined;
      const removed = issuerOf(found);
      const detail = { ...detailOf(removed), ...(signedOut.length > 0 && { signedOut: signedOut.length }) };
      await record({ action: 'issuer.remove', target: targetOf(removed), by, detail });
      return { issuer: removed, signedOut };
    });
  }
}

const targetOf = ({ id }: TrustedIssuer) => ({ kind: 'issuer', name: id }) as const;

/** For the audit log. */
const detailOf = ({ id: _, tenantId: __, createdAt: ___, ...rights }: TrustedIssuer) => rights;

const NO_SELECTOR = { claim: '', value: '' };

/** Rows with another URL of keys. `not` alone leaves out NULL. */
const otherUrl = (jwksUrl: string) => ({ OR: [{ jwksUrl: null }, { jwksUrl: { not: jwksUrl } }] });

function issuerOf({
  tenantClaim: claim,
  tenantValue: value,
  scopes,
  grants,
  ...row
}: IssuerRow): TrustedIssuer {
  return {
    ...row,
    selector: claim === '' ? null : { claim, value },
    scopes: scopes as Scope[],
    grants: grants as unknown as ClaimGrant[],
  };
}
