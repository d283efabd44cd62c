import { clock } from '@baton/telemetry';
import { isUuid, type Scope, tokenPrincipal } from '@baton/a2a';
import { DEFAULT_LIMITS, Environment } from '@baton/config';
import { Inject, Injectable } from '@nestjs/common';
import { type Actor } from '../audit/audit-records.js';
import { CatalogClient, type CatalogChange, transactionOf } from '../connection/catalog-client.js';
import type { Statement } from '../connection/database.js';
import { type ApiToken as ApiTokenRow, Prisma } from '../generated/client.js';
import type { ApiToken, FoundToken, TokenRights } from './tenant-records.js';
import { keepInRoom } from './tenant-room.js';

/** The secret of a token as the database has it. */
export interface StoredSecret {
  /** The hex SHA-256 of the secret. */
  hash: string;
  prefix: string;
}

/** The end of a page of tokens: the next page begins after this one. */
export type TokenPosition = Pick<ApiToken, 'createdAt' | 'id'>;

/** Each side of the OR has an index. A row without a list of agents has NULL. $1 hashes */
const BY_HASHES: Statement = {
  name: 'tokens-by-hashes',
  text: `SELECT id::text, tenant_id::text AS "tenantId", name, hash, prefix,
    coalesce(scopes, '{}') AS scopes, coalesce(agents, '{}') AS agents,
    requests_per_second AS "requestsPerSecond", expires_at AS "expiresAt", revoked_at AS "revokedAt",
    last_used_at AS "lastUsedAt", previous_hash AS "previousHash", previous_prefix AS "previousPrefix",
    previous_until AS "previousUntil", created_at AS "createdAt"
    FROM api_tokens WHERE hash = ANY ($1::text[]) OR previous_hash = ANY ($1::text[])`,
};

/** $1 tenants, $2 tokens, $3 times */
const NOTE_USES: Statement = {
  text: `UPDATE api_tokens t SET last_used_at = used.at
    FROM unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) AS used(tenant_id, id, at)
    WHERE t.tenant_id = used.tenant_id AND t.id = used.id AND (t.last_used_at IS NULL OR t.last_used_at < used.at)`,
};

/** Tokens. A secret is known by its hash alone. */
@Injectable()
export class TokenStore {
  constructor(
    private readonly catalog: CatalogClient,
    @Inject(Environment)
    private readonly environment: Pick<Environment, 'defaultLimits'> = { defaultLimits: DEFAULT_LIMITS },
  ) {}

  /** @throws LimitReachedError if the tenant has as many as it may have that were not revoked */
  async create(input: TokenRights & StoredSecret & { tenantId: string }, by: Actor): Promise<ApiToken> {
    const { tenantId } = input;
    const create: CatalogChange<ApiToken> = async (prisma, record) => {
      const token = tokenOf(await prisma.apiToken.create({ data: input }));
      await record({ action: 'token.create', target: targetOf(token.id), by, detail: detailOf(token) });
      await keepInRoom(transactionOf(prisma), tenantId, this.environment.defaultLimits, { added: 'tokens' });
      return token;
    };
    // One after the other, so that the number is exact.
    return this.catalog.change(tenantId, create, 'tokens are made');
  }

  /** By hash. Also finds revoked and expired tokens, and tokens by their former secret: the caller decides about them. */
  async byHashes(hashes: readonly string[]): Promise<Map<string, FoundToken>> {
    const rows = await this.catalog.query<ApiTokenRow>(BY_HASHES, [hashes]);
    const found = new Map<string, FoundToken>();
    for (const row of rows) {
      const token = tokenOf(row);
      found.set(row.hash, token);
      if (row.previousHash !== null && row.previousUntil) {
        found.set(row.previousHash, { ...token, secretUntil: row.previousUntil });
      }
    }
    return found;
  }

  /** Newest first. @param page unset = all */
  async list(
    tenantId: string,
    page?: { limit: number; after?: TokenPosition | undefined },
  ): Promise<ApiToken[]> {
    const after = page?.after;
    const older = after && [
      { createdAt: { lt: after.createdAt } },
      { createdAt: after.createdAt, id: { lt: after.id } },
    ];
    const rows = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.apiToken.findMany({
        where: { tenantId, ...(older && { OR: older }) },
        orderBy: [{ createdAt: 'desc' }, { id: 'desc' }],
        ...(page && { take: page.limit }),
      }),
    );
    return rows.map(tokenOf);
  }

  /** By id or prefix; of several with one prefix the newest. */
  async find(tenantId: string, idOrPrefix: string): Promise<ApiToken | undefined> {
    const row = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.apiToken.findFirst({ where: named(tenantId, idOrPrefix), orderBy: { createdAt: 'desc' } }),
    );
    return row ? tokenOf(row) : undefined;
  }

  /** @returns undefined if it is gone or revoked */
  async change(
    tenantId: string,
    id: string,
    rights: Partial<TokenRights>,
    by: Actor,
  ): Promise<ApiToken | undefined> {
    return this.catalog.change(tenantId, async (prisma, record) => {
      const where = { tenantId, id, revokedAt: null };
      const [row] = await prisma.apiToken.updateManyAndReturn({ where, data: rights });
      if (!row) return undefined;
      const token = tokenOf(row);
      await record({ action: 'token.update', target: targetOf(id), by, detail: detailOf(token) });
      return token;
    });
  }

  /**
   * Gives the token another secret. The present secret stays valid for a while, and the one before it ends.
   * @param overlapMs how long it stays valid, but not longer than the token was
   * @returns undefined if it is gone or revoked
   */
  async rotate(
    tenantId: string,
    id: string,
    { hash, prefix }: StoredSecret,
    { overlapMs, expiresAt }: { overlapMs: number; expiresAt?: Date | null },
    by: Actor,
  ): Promise<ApiToken | undefined> {
    const expiry = expiresAt === undefined ? Prisma.sql`expires_at` : Prisma.sql`${expiresAt}::timestamptz`;
    const changed = await this.catalog.change(tenantId, async (prisma, record) => {
      const count = await prisma.$executeRaw`
        UPDATE api_tokens SET hash = ${hash}, prefix = ${prefix}, previous_hash = hash, previous_prefix = prefix,
          previous_until = least(now() + ${overlapMs}::double precision * interval '1 ms', expires_at),
          expires_at = ${expiry}
        WHERE tenant_id = ${tenantId}::uuid AND id = ${id}::uuid AND revoked_at IS NULL`;
      const detail = { prefix, overlapMs, ...(expiresAt !== undefined && { expiresAt }) };
      if (count > 0) await record({ action: 'token.rotate', target: targetOf(id), by, detail });
      return count;
    });
    return changed === 0 ? undefined : this.find(tenantId, id);
  }

  /**
   * Finds by id or prefix within the tenant; undefined if there is none. Several of one prefix are all
   * revoked. The time of an earlier revocation stays.
   */
  async revoke(tenantId: string, idOrPrefix: string, by: Actor): Promise<ApiToken | undefined> {
    const where = named(tenantId, idOrPrefix);
    await this.catalog.change(tenantId, async (prisma, record) => {
      const revoked = await prisma.apiToken.updateManyAndReturn({
        where: { ...where, revokedAt: null },
        data: { revokedAt: clock.date() },
      });
      for (const { id, name, prefix } of revoked) {
        await record({ action: 'token.revoke', target: targetOf(id), by, detail: { name, prefix } });
        // No caller can use its sign-ins any more.
        const ofCaller = { tenantId, caller: tokenPrincipal(id).key };
        await prisma.oAuthConnection.deleteMany({ where: ofCaller });
        await prisma.oAuthSignIn.deleteMany({ where: ofCaller });
      }
    });
    const rows = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.apiToken.findMany({ where, orderBy: { revokedAt: 'desc' }, take: 1 }),
    );
    return rows[0] && tokenOf(rows[0]);
  }

  /** Stores when tokens were used, of many tenants at once. A later time stays. */
  async noteUses(uses: readonly { id: string; tenantId: string; at: Date }[]): Promise<void> {
    // Sorted: two processes that store the same tokens do not deadlock.
    const sorted = uses.toSorted((one, other) => (one.id < other.id ? -1 : 1));
    const [tenants, ids, times] = [
      sorted.map(({ tenantId }) => tenantId),
      sorted.map(({ id }) => id),
      sorted.map(({ at }) => at),
    ];
    await this.catalog.query(NOTE_USES, [tenants, ids, times]);
  }
}

const named = (tenantId: string, idOrPrefix: string): Prisma.ApiTokenWhereInput =>
  isUuid(idOrPrefix)
    ? { tenantId, id: idOrPrefix }
    : { tenantId, OR: [{ prefix: idOrPrefix }, { previousPrefix: idOrPrefix }] };

const targetOf = (id: string) => ({ kind: 'token', name: id }) as const;

/** What a token may do, for the audit log. */
const detailOf = ({ name, prefix, scopes, agents, requestsPerSecond, expiresAt }: ApiToken) => ({
  name,
  prefix,
  scopes,
  agents,
  requestsPerSecond,
  expiresAt,
});

/** The hashes stay in the database. */
const tokenOf = ({ hash: _, previousHash: __, scopes, ...row }: ApiTokenRow): ApiToken => ({
  ...row,
  scopes: scopes as Scope[],
});
