import { clock } from '@baton/telemetry';
import { DEFAULT_LIMITS, Environment } from '@baton/config';
import { Inject, Injectable } from '@nestjs/common';
import { type Actor } from '../audit/audit-records.js';
import { CatalogClient, type CatalogChange, transactionOf } from '../connection/catalog-client.js';
import type { Statement } from '../connection/database.js';
import { Prisma, type Secret } from '../generated/client.js';
import type { PageAfter } from '../tenants/tenant-records.js';
import { type Kept, keepInRoom } from '../tenants/tenant-room.js';
import { SECRET_BYTES } from '../tenants/count-usage.js';
import type { BoundSecret, SealedSecret, SecretInfo, SecretKey } from './catalog-records.js';

const INFO = { name: true, keyId: true, origins: true, createdAt: true, updatedAt: true };

/** No tenant has it. */
const FIRST_ID = '00000000-0000-0000-0000-000000000000';

/** $1 tenant, $2 name */
const FIND: Statement = {
  name: 'secret-find',
  text: `SELECT key_id AS "keyId", nonce, ciphertext, origins FROM secrets WHERE tenant_id = $1::uuid AND name = $2`,
};

/** Encrypted secrets of tenants. The values cannot be read without the master key. */
@Injectable()
export class SecretStore {
  constructor(
    private readonly catalog: CatalogClient,
    @Inject(Environment)
    private readonly environment: Pick<Environment, 'defaultLimits'> = { defaultLimits: DEFAULT_LIMITS },
  ) {}

  /**
   * Store a secret. Replaces the one with the same name.
   * @param origins the destinations that may receive it. Default: those of the replaced secret, else `otherwise`
   * @throws LimitReachedError if there are too many, or if their bytes have no room
   */
  async put(
    { tenantId, name }: SecretKey,
    sealed: SealedSecret,
    origins: string[] | undefined,
    otherwise: string[],
    by: Actor,
  ): Promise<SecretInfo> {
    const data = columnsOf(sealed);
    const put: CatalogChange<SecretInfo> = async (prisma, record) => {
      const before = await lockedBytes(prisma, { tenantId, name });
      const row = await prisma.secret.upsert({
        where: { tenantId_name: { tenantId, name } },
        create: { tenantId, name, ...data, origins: origins ?? otherwise },
        update: { ...data, ...(origins && { origins }), updatedAt: clock.date() },
        select: INFO,
      });
      await record({
        action: 'secret.set',
        target: { kind: 'secret', name },
        by,
        detail: { origins: row.origins },
      });
      await this.keep(prisma, { tenantId, name }, before, before === undefined ? { added: 'secrets' } : {});
      return infoOf(row);
    };
    // One after the other, so that the number is exact.
    return this.catalog.change(tenantId, put, 'secrets are set');
  }

  /**
   * Set the destinations that may receive a secret.
   * @returns undefined if there is no such secret
   * @throws LimitReachedError if their bytes have no room
   */
  async setOrigins(
    { tenantId, name }: SecretKey,
    origins: string[],
    by: Actor,
  ): Promise<SecretInfo | undefined> {
    return this.catalog.change(tenantId, async (prisma, record) => {
      const before = await lockedBytes(prisma, { tenantId, name });
      const [row] = await prisma.secret.updateManyAndReturn({
        where: { tenantId, name },
        data: { origins, updatedAt: clock.date() },
        select: INFO,
      });
      if (!row) return undefined;
      await record({ action: 'secret.origins', target: { kind: 'secret', name }, by, detail: { origins } });
      await this.keep(prisma, { tenantId, name }, before);
      return infoOf(row);
    });
  }

  async find({ tenantId, name }: SecretKey): Promise<BoundSecret | undefined> {
    const [secret] = await this.catalog.queryInTenant<BoundSecret>(tenantId, FIND, [tenantId, name]);
    return secret;
  }

  /** By name, in the order of the database. @param page unset = all */
  async list(tenantId: string, page?: PageAfter): Promise<SecretInfo[]> {
    const rows = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.secret.findMany({
        where: { tenantId, name: { gt: page?.after ?? '' } },
        orderBy: { name: 'asc' },
        select: INFO,
        ...(page && { take: page.limit }),
      }),
    );
    return rows.map(infoOf);
  }

  /** The origins of those of the named secrets that exist. */
  async origins(tenantId: string, names: string[]): Promise<Map<string, string[] | null>> {
    const rows = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.secret.findMany({
        where: { tenantId, name: { in: names } },
        select: { name: true, origins: true },
      }),
    );
    return new Map(rows.map((row) => [row.name, originsOf(row)]));
  }

  /** @returns whether there was such a secret */
  async remove({ tenantId, name }: SecretKey, by: Actor): Promise<boolean> {
    return this.catalog.change(tenantId, async (prisma, record) => {
      const before = await lockedBytes(prisma, { tenantId, name });
      if (before === undefined) return false;
      await prisma.secret.deleteMany({ where: { tenantId, name } });
      await record({ action: 'secret.delete', target: { kind: 'secret', name }, by });
      await this.keep(prisma, { tenantId, name }, before);
      return true;
    });
  }

  /**
   * At most `limit` secrets of all tenants that another key has encrypted, by tenant and name: also those of push configs,
   * of webhooks, and of sign-ins at servers.
   * @param after the last one of the previous batch
   */
  async listOutdated(keyId: string, limit: number, after?: SecretKey): Promise<(SecretKey & SealedSecret)[]> {
    const { tenantId, name } = after ?? { tenantId: FIRST_ID, name: '' };
    return this.catalog.run(
      (prisma) => prisma.$queryRaw<(SecretKey & SealedSecret)[]>`
        SELECT tenant_id::text AS "tenantId", name, key_id AS "keyId", nonce, ciphertext FROM (
          SELECT tenant_id, name, key_id, nonce, ciphertext FROM secrets WHERE key_id <> ${keyId}
          UNION ALL
          SELECT tenant_id, 'push ' || task_id || ' ' || id, key_id, nonce, ciphertext FROM push_configs WHERE key_id <> ${keyId}
          UNION ALL
          SELECT tenant_id, 'webhook ' || id, key_id, nonce, ciphertext FROM webhooks WHERE key_id <> ${keyId}
          UNION ALL
          SELECT tenant_id, 'connection ' || id, key_id, nonce, ciphertext FROM oauth_connections WHERE key_id <> ${keyId}
          UNION ALL
          SELECT tenant_id, 'oauth-client ' || issuer, key_id, nonce, ciphertext FROM oauth_clients WHERE key_id <> ${keyId}
        ) sealed
        WHERE (tenant_id, name COLLATE "C") > (${tenantId}::uuid, ${name} COLLATE "C")
        ORDER BY tenant_id, name COLLATE "C" LIMIT ${limit}`,
    );
  }

  /** Replace `before` by `next`. @returns false if the secret was set or removed meanwhile; then nothing changes */
  async replace({ tenantId, name }: SecretKey, before: SealedSecret, next: SealedSecret): Promise<boolean> {
    const { keyId, nonce } = columnsOf(before);
    const data = columnsOf(next);
    const [kind, id = '', ...more] = name.split(' ');
    const { count } = await this.catalog.inTenant(tenantId, (prisma) => {
      // Ids of configs may have spaces.
      if (kind === 'push' && more.length > 0) {
        const where = { tenantId, taskId: id, id: more.join(' '), keyId, nonce };
        return prisma.pushConfig.updateMany({ where, data });
      }
      if (kind === 'webhook' && id !== '') {
        return prisma.webhook.updateMany({ where: { tenantId, id, keyId, nonce }, data });
      }
      if (kind === 'connection' && id !== '') {
        return prisma.oAuthConnection.updateMany({ where: { tenantId, id, keyId, nonce }, data });
      }
      if (kind === 'oauth-client' && id !== '') {
        return prisma.oAuthClient.updateMany({ where: { tenantId, issuer: id, keyId, nonce }, data });
      }
      return prisma.secret.updateMany({ where: { tenantId, name, keyId, nonce }, data });
    });
    return count > 0;
  }

  /** @param before its bytes before the change; undefined = there was none */
  private async keep(
    prisma: Prisma.TransactionClient,
    key: SecretKey,
    before: number | undefined,
    kept: Kept = {},
  ): Promise<void> {
    const bytes = ((await lockedBytes(prisma, key)) ?? 0) - (before ?? 0);
    const { defaultLimits } = this.environment;
    await keepInRoom(transactionOf(prisma), key.tenantId, defaultLimits, { ...kept, bytes });
  }
}

/** Stored bytes of a secret, under a lock. Undefined: there is none. */
async function lockedBytes(
  prisma: Prisma.TransactionClient,
  { tenantId, name }: SecretKey,
): Promise<number | undefined> {
  const [row] = await prisma.$queryRaw<{ bytes: number }[]>`
    SELECT ${Prisma.raw(SECRET_BYTES)} AS bytes FROM secrets
    WHERE tenant_id = ${tenantId}::uuid AND name = ${name} FOR UPDATE`;
  return row?.bytes;
}

const originsOf = ({ origins }: Pick<Secret, 'origins'>): string[] | null => origins as string[] | null;

const infoOf = <T extends Pick<Secret, 'origins'>>(row: T): T & { origins: string[] | null } => ({
  ...row,
  origins: originsOf(row),
});

const columnsOf = ({
  keyId,
  nonce,
  ciphertext,
}: SealedSecret): Pick<Secret, 'keyId' | 'nonce' | 'ciphertext'> => ({
  keyId,
  nonce: Uint8Array.from(nonce),
  ciphertext: Uint8Array.from(ciphertext),
});
