import { type AgentDefinition, isUuid } from '@baton/a2a';
import { CATALOG_LIMITS } from '@baton/config';
import { Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { type Actor, type AuditAction, PLATFORM_ACTOR } from '../audit/audit-records.js';
import { CatalogClient, type Change, NameTakenError } from '../connection/catalog-client.js';
import { Prisma } from '../generated/client.js';
import type { AgentContent, AgentKey, AgentVersion, CatalogEntry, NewAgent } from './catalog-records.js';

const { maxAgents, maxVersions } = CATALOG_LIMITS;
/** How long a deleted agent without tasks stays: a send may be in progress when the agent is deleted. */
const DELETED_HOURS = 1;

/** The tenant has the maximum number of agents. */
export class CatalogFullError extends Error {
  override readonly name = 'CatalogFullError';
}

interface EntryRow extends Omit<CatalogEntry, 'origin' | 'definition' | 'status'> {
  definition: unknown;
  enabled: boolean;
}

const ENTRY = Prisma.sql`id::text, slug, definition, version, enabled, created_at AS "createdAt",
  updated_at AS "updatedAt"`;
const VERSION_COLUMNS = Prisma.sql`tenant_id, agent_id, version, definition, enabled, created_by`;

/** The agents of tenants' catalogs, with their versions. Each write makes a new version. */
@Injectable()
export class AgentCatalogStore {
  constructor(private readonly catalog: CatalogClient) {}

  /** Rejects with `NameTakenError` if the slug is taken, and with `CatalogFullError` if there are too many agents. */
  async create(
    { tenantId, slug, definition, enabled, by }: NewAgent,
    actor: Actor = PLATFORM_ACTOR,
  ): Promise<CatalogEntry> {
    await this.purge(tenantId);
    const made = await this.write(
      tenantId,
      Prisma.sql`
        INSERT INTO agents (id, tenant_id, slug, definition, enabled)
        SELECT ${randomUUID()}::uuid, ${tenantId}::uuid, ${slug}, ${JSON.stringify(definition)}::json, ${enabled}
        WHERE (SELECT count(*) FROM agents WHERE tenant_id = ${tenantId}::uuid AND deleted_at IS NULL) < ${maxAgents}
        ON CONFLICT (tenant_id, slug) WHERE deleted_at IS NULL DO NOTHING
        RETURNING *`,
      { by, action: 'agent.create', actor },
      // A lock: the count is exact only if nobody else creates an agent meanwhile.
      'agents are made',
    );
    if (made) return made;
    if (await this.find(tenantId, slug)) {
      throw new NameTakenError(`The tenant already has an agent '${slug}'`);
    }
    throw new CatalogFullError(`The tenant has ${maxAgents} agents already`);
  }

  /** Finds an agent by slug or id. Never finds a deleted one. */
  async find(tenantId: string, slugOrId: string): Promise<CatalogEntry | undefined> {
    if (slugOrId.includes('\0')) return undefined;
    const names = isUuid(slugOrId) ? { OR: [{ slug: slugOrId }, { id: slugOrId }] } : { slug: slugOrId };
    const row = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.catalogAgent.findFirst({ where: { tenantId, deletedAt: null, ...names } }),
    );
    return row ? entryOf(row) : undefined;
  }

  /** Make the next version. Undefined: the agent has changed meanwhile, or is deleted. */
  async change(
    { tenantId, id, version }: AgentKey,
    { definition, enabled, by }: AgentContent,
    actor: Actor = PLATFORM_ACTOR,
  ): Promise<CatalogEntry | undefined> {
    const changed = await this.write(
      tenantId,
      Prisma.sql`
        UPDATE agents SET definition = ${JSON.stringify(definition)}::json, enabled = ${enabled},
          version = version + 1, updated_at = now()
        WHERE tenant_id = ${tenantId}::uuid AND id = ${id}::uuid AND version = ${version} AND deleted_at IS NULL
        RETURNING *`,
      { by, action: 'agent.update', actor },
    );
    const oldest = version + 1 - maxVersions;
    if (changed && oldest > 0) {
      await this.catalog.inTenant(tenantId, (prisma) =>
        prisma.agentVersion.deleteMany({ where: { tenantId, agentId: id, version: { lte: oldest } } }),
      );
    }
    return changed;
  }

  /**
   * Take an agent out of the catalog. Its row stays for its tasks and its slug is free again.
   * @returns false if it has changed meanwhile, or is deleted
   */
  async remove({ tenantId, id, version }: AgentKey, actor: Actor = PLATFORM_ACTOR): Promise<boolean> {
    return this.catalog.change(tenantId, async (prisma, record) => {
      const [removed] = await prisma.catalogAgent.updateManyAndReturn({
        where: { tenantId, id, version, deletedAt: null },
        data: { deletedAt: new Date() },
        select: { slug: true },
      });
      if (!removed) return false;
      const target = { kind: 'agent', name: removed.slug } as const;
      await record({ action: 'agent.delete', target, by: actor, detail: { id, version } });
      return true;
    });
  }

  /** Lists versions, newest first: at most `limit`, only those before the version `before`. */
  async versions(tenantId: string, agentId: string, limit: number, before?: number): Promise<AgentVersion[]> {
    const rows = await this.catalog.inTenant(tenantId, (prisma) =>
      prisma.agentVersion.findMany({
        where: { tenantId, agentId, ...(before !== undefined && { version: { lt: before } }) },
        orderBy: { version: 'desc' },
        take: limit,
      }),
    );
    return rows.map(({ version, definition, enabled, createdBy: by, createdAt, erasedAt }) => ({
      ...{ version, enabled, by, createdAt, erasedAt },
      definition: definition as unknown as AgentDefinition,
    }));
  }

  /**
   * Erase the definition of an earlier version. The version stays in the history.
   * @returns false if it is the present version, was erased before, or does not exist
   */
  async eraseVersion(
    { tenantId, id, version }: AgentKey,
    slug: string,
    actor: Actor = PLATFORM_ACTOR,
  ): Promise<boolean> {
    return this.catalog.change(tenantId, async (prisma, record) => {
      const { count } = await prisma.agentVersion.updateMany({
        where: { tenantId, agentId: id, version, erasedAt: null, agent: { version: { gt: version } } },
        data: { definition: {}, erasedAt: new Date() },
      });
      if (count === 0) return false;
      const target = { kind: 'agent', name: slug } as const;
      await record({ action: 'agent.erase', target, by: actor, detail: { id, version } });
      return true;
    });
  }

  /** Runs a statement that writes an agent and returns it, and stores the result as a version. */
  private async write(
    tenantId: string,
    statement: Prisma.Sql,
    { by, action, actor }: { by: string; action: AuditAction; actor: Actor },
    alone?: string,
  ): Promise<CatalogEntry | undefined> {
    const write: Change<CatalogEntry | undefined> = async (prisma, record) => {
      const [row] = await prisma.$queryRaw<EntryRow[]>`
        WITH written AS (${statement}),
        kept AS (
          INSERT INTO agent_versions (${VERSION_COLUMNS})
          SELECT tenant_id, id, version, definition, enabled, ${by} FROM written
        )
        SELECT ${ENTRY} FROM written`;
      if (!row) return undefined;
      const { id, slug, version, enabled } = row;
      const target = { kind: 'agent', name: slug } as const;
      await record({ action, target, by: actor, detail: { id, version, enabled } });
      return entryOf(row);
    };
    return this.catalog.change(tenantId, write, alone);
  }

  /** Removes the rows of deleted agents without tasks. */
  private async purge(tenantId: string): Promise<void> {
    await this.catalog.inTenant(
      tenantId,
      (prisma) => prisma.$executeRaw`
        DELETE FROM agents a WHERE a.tenant_id = ${tenantId}::uuid
          AND a.deleted_at < now() - make_interval(hours => ${DELETED_HOURS})
          AND NOT EXISTS (
            SELECT 1 FROM tasks t WHERE t.tenant_id = ${tenantId}::uuid AND t.agent_id = a.id::text
          )`,
    );
  }
}

function entryOf({ id, slug, version, enabled, createdAt, updatedAt, definition }: EntryRow): CatalogEntry {
  return {
    ...{ id, slug, origin: 'catalog', version, createdAt, updatedAt },
    definition: definition as AgentDefinition,
    ...(!enabled && { status: 'disabled' }),
  };
}
