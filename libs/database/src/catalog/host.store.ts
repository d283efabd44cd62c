import { Injectable } from '@nestjs/common';
import { type Actor } from '../audit/audit-records.js';
import { CatalogClient } from '../connection/catalog-client.js';
import type { Statement } from '../connection/database.js';
import type { PrismaClient } from '../generated/client.js';
import type { HostBinding } from './catalog-records.js';

/** Longest name of the DNS. */
const MAX_LENGTH = 253;

/** $1 host */
const FIND: Statement = {
  name: 'host-find',
  text: `SELECT host, tenant_id::text AS "tenantId", agent, public FROM hosts WHERE host = $1`,
};

/** Host names and the agents that they are bound to. */
@Injectable()
export class HostStore {
  constructor(private readonly catalog: CatalogClient) {}

  /** @param host as in a Host header: in any case, with or without a port */
  async find(host: string): Promise<HostBinding | undefined> {
    const name = hostName(host);
    // No binding has such a name, and Postgres refuses U+0000 in a text.
    if (name === '' || name.length > MAX_LENGTH || name.includes('\0')) return undefined;
    const [binding] = await this.catalog.query<HostBinding>(FIND, [name]);
    return binding;
  }

  /** Bind the host, or change its binding. Undefined: it is bound to another tenant. Nothing changes. */
  async bind(
    { host, tenantId, agent, public: open }: HostBinding,
    by: Actor,
  ): Promise<HostBinding | undefined> {
    const binding = { host: hostName(host), tenantId, agent, public: open };
    return this.catalog.change(tenantId, async (prisma, record) => {
      // The first caller gets the name: `create` with a taken name does nothing.
      await prisma.hostBinding.createMany({ data: binding, skipDuplicates: true });
      const where = { host: binding.host, tenantId };
      const { count } = await prisma.hostBinding.updateMany({ where, data: { agent, public: open } });
      if (count === 0) return undefined;
      const target = { kind: 'host', name: binding.host } as const;
      await record({ action: 'host.bind', target, by, detail: { agent, public: open } });
      return binding;
    });
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
  async unbind(host: string, by: Actor): Promise<HostBinding | undefined> {
    const binding = await this.find(host);
    if (!binding) return undefined;
    const { tenantId, host: name, agent } = binding;
    return this.catalog.change(tenantId, async (prisma, record) => {
      const { count } = await prisma.hostBinding.deleteMany({ where: { host: name, tenantId } });
      if (count === 0) return undefined;
      await record({ action: 'host.unbind', target: { kind: 'host', name }, by, detail: { agent } });
      return binding;
    });
  }
}

/** The name in a Host header as it is stored and compared: lower case, no port, no dot at its end. */
export const hostName = (host: string): string =>
  host.trim().toLowerCase().replace(/:\d*$/, '').replace(/\.$/, '');
