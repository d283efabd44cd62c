import { Injectable } from '@nestjs/common';
import { CatalogClient } from '../connection/catalog-client.js';
import type { Secret } from '../generated/client.js';
import type { SealedSecret, SecretInfo, SecretKey } from './catalog-records.js';

const INFO = { name: true, keyId: true, createdAt: true, updatedAt: true };

/** Encrypted secrets of tenants. The values cannot be read without the master key. */
@Injectable()
export class SecretStore {
  constructor(private readonly catalog: CatalogClient) {}

  /** Store a secret. Replaces the one with the same name. */
  async put({ tenantId, name }: SecretKey, sealed: SealedSecret): Promise<SecretInfo> {
    const data = columnsOf(sealed);
    return this.catalog.inTenant(tenantId, (prisma) =>
      prisma.secret.upsert({
        where: { tenantId_name: { tenantId, name } },
        create: { tenantId, name, ...data },
        update: { ...data, updatedAt: new Date() },
        select: INFO,
      }),
    );
  }

  async find({ tenantId, name }: SecretKey): Promise<SealedSecret | undefined> {
    const row = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.secret.findUnique({ where: { tenantId_name: { tenantId, name } } }),
    );
    return row ?? undefined;
  }

  /** By name. */
  async list(tenantId: string): Promise<SecretInfo[]> {
    return this.catalog.inTenant(tenantId, (prisma) =>
      prisma.secret.findMany({ where: { tenantId }, orderBy: { name: 'asc' }, select: INFO }),
    );
  }

  /** @returns whether there was such a secret */
  async remove({ tenantId, name }: SecretKey): Promise<boolean> {
    const { count } = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.secret.deleteMany({ where: { tenantId, name } }),
    );
    return count > 0;
  }

  /**
   * At most `limit` secrets of all tenants that another key has encrypted, by tenant and name.
   * @param after the last one of the previous batch
   */
  async listOutdated(keyId: string, limit: number, after?: SecretKey): Promise<(SecretKey & SealedSecret)[]> {
    const beyond = after && {
      OR: [{ tenantId: { gt: after.tenantId } }, { tenantId: after.tenantId, name: { gt: after.name } }],
    };
    return this.catalog.run((prisma) =>
      prisma.secret.findMany({
        where: { keyId: { not: keyId }, ...beyond },
        orderBy: [{ tenantId: 'asc' }, { name: 'asc' }],
        take: limit,
      }),
    );
  }

  /** Replace `before` by `next`. @returns false if the secret was set or removed meanwhile; then nothing changes */
  async replace({ tenantId, name }: SecretKey, before: SealedSecret, next: SealedSecret): Promise<boolean> {
    const { keyId, nonce } = columnsOf(before);
    const { count } = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.secret.updateMany({ where: { tenantId, name, keyId, nonce }, data: columnsOf(next) }),
    );
    return count > 0;
  }
}

const columnsOf = ({
  keyId,
  nonce,
  ciphertext,
}: SealedSecret): Pick<Secret, 'keyId' | 'nonce' | 'ciphertext'> => ({
  keyId,
  nonce: Uint8Array.from(nonce),
  ciphertext: Uint8Array.from(ciphertext),
});
