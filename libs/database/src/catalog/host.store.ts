import { Injectable } from '@nestjs/common';
import { CatalogClient } from '../connection/catalog-client.js';
import type { PrismaClient } from '../generated/client.js';
import type { HostBinding } from './catalog-records.js';

/** Longest name of the DNS. */
const MAX_LENGTH = 253;

/** Host names and the agents that they are bound to. */
@Injectable()
export class HostStore {
  constructor(private readonly catalog: CatalogClient) {}

  /** @param host as in a Host header: in any case, with or without a port */
  async find(host: string): Promise<HostBinding | undefined> {
    const name = hostName(host);
    // No binding has such a name, and Postgres refuses U+0000 in a text.
    if (name === '' || name.length > MAX_LENGTH || name.includes('\0')) return undefined;
    const row = await this.catalog.run((prisma) =>
      prisma.hostBinding.findUnique({ where: { host: name }, omit: { createdAt: true } }),
    );
    return row ?? undefined;
  }

  /** Bind the host, or change its binding. Undefined: it is bound to another tenant. Nothing changes. */
  async bind({ host, tenantId, agent, public: open }: HostBinding): Promise<HostBinding | undefined> {
    const binding = { host: hostName(host), tenantId, agent, public: open };
    // The first caller gets the name: `create` with a taken name does nothing.
    await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.hostBinding.createMany({ data: binding, skipDuplicates: true }),
    );
    const where = { host: binding.host, tenantId };
    const { count } = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.hostBinding.updateMany({ where, data: { agent, public: open } }),
    );
    return count > 0 ? binding : undefined;
  }

  /** By name; of one tenant, or of all. */
  async list(tenantId?: string): Promise<HostBinding[]> {
    const query = (prisma: PrismaClient) =>
      prisma.hostBinding.findMany({
        where: { tenantId },
        omit: { createdAt: true },
        orderBy: { host: 'asc' },
      });
    return tenantId === undefined ? this.catalog.run(query) : this.catalog.inTenant(tenantId, query);
  }

  /** @returns the binding there was */
  async unbind(host: string): Promise<HostBinding | undefined> {
    const binding = await this.find(host);
    if (!binding) return undefined;
    const where = { host: binding.host, tenantId: binding.tenantId };
    const { count } = await this.catalog.inTenant(binding.tenantId, (prisma) =>
      prisma.hostBinding.deleteMany({ where }),
    );
    return count > 0 ? binding : undefined;
  }
}

/** The name in a Host header as it is stored and compared: lower case, no port, no dot at its end. */
export const hostName = (host: string): string =>
  host.trim().toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
