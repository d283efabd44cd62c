import { isUuid, type Scope } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { CatalogClient } from '../connection/catalog-client.js';
import type { ApiToken as ApiTokenRow } from '../generated/client.js';
import type { ApiToken } from './tenant-records.js';

/** Tokens. `hash` is the hex SHA-256 of the secret. */
@Injectable()
export class TokenStore {
  constructor(private readonly catalog: CatalogClient) {}

  async create(input: {
    tenantId: string;
    name: string;
    hash: string;
    prefix: string;
    scopes: Scope[];
    expiresAt: Date | null;
  }): Promise<ApiToken> {
    return tokenOf(
      await this.catalog.inTenant(input.tenantId, (prisma) => prisma.apiToken.create({ data: input })),
    );
  }

  /** Also finds revoked and expired tokens: the caller decides about them. */
  async byHash(hash: string): Promise<ApiToken | undefined> {
    const row = await this.catalog.run((prisma) => prisma.apiToken.findUnique({ where: { hash } }));
    return row ? tokenOf(row) : undefined;
  }

  /** Like `byHash`, for many at once. */
  async byHashes(hashes: readonly string[]): Promise<Map<string, ApiToken>> {
    const rows = await this.catalog.run((prisma) =>
      prisma.apiToken.findMany({ where: { hash: { in: [...hashes] } } }),
    );
    return new Map(rows.map((row) => [row.hash, tokenOf(row)]));
  }

  /** Newest first. */
  async list(tenantId: string): Promise<ApiToken[]> {
    const rows = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.apiToken.findMany({ where: { tenantId }, orderBy: { createdAt: 'desc' } }),
    );
    return rows.map(tokenOf);
  }

  /**
   * Finds by id or prefix within the tenant; undefined if there is none. Several of one prefix are all
   * revoked. The time of an earlier revocation stays.
   */
  async revoke(tenantId: string, idOrPrefix: string): Promise<ApiToken | undefined> {
    const where = { tenantId, ...(isUuid(idOrPrefix) ? { id: idOrPrefix } : { prefix: idOrPrefix }) };
    await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.apiToken.updateMany({ where: { ...where, revokedAt: null }, data: { revokedAt: new Date() } }),
    );
    const rows = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.apiToken.findMany({ where, orderBy: { revokedAt: 'desc' }, take: 1 }),
    );
    return rows[0] && tokenOf(rows[0]);
  }
}

/** The hash stays in the database. */
const tokenOf = ({ hash: _, scopes, ...row }: ApiTokenRow): ApiToken => ({
  ...row,
  scopes: scopes as Scope[],
});
