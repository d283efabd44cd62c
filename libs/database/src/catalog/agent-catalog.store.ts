import { clock } from '@baton/telemetry';
import { type AgentDefinition, isUuid, outputSchemaOf } from '@baton/a2a';
import { DEFAULT_LIMITS, Environment } from '@baton/config';
import { Inject, Injectable } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { type Actor, type AuditAction, PLATFORM_ACTOR } from '../audit/audit-records.js';
import { CatalogClient, type CatalogChange, transactionOf } from '../connection/catalog-client.js';
import { NameTakenError } from '../connection/name-taken-error.js';
import type { Statement } from '../connection/database.js';
import { Prisma } from '../generated/client.js';
import { type Kept, keepInRoom } from '../tenants/tenant-room.js';
import { VERSION_BYTES } from '../tenants/count-usage.js';
import { labelColumns, labelsOf, type LabelsRow } from './agent-labels.js';
import type {
  AgentContent,
  AgentKey,
  AgentVersion,
  CatalogEntry,
  NewAgent,
  NewNext,
} from './catalog-records.js';
import type { FailingNext } from './failing-next.store.js';

/** Versions that are kept per agent. The oldest ones are deleted. */
const MAX_VERSIONS = 100;
/** How long a deleted agent without tasks stays: a send may be in progress when the agent is deleted. */
const DELETED_HOURS = 1;

interface EntryRow extends Omit<CatalogEntry, 'origin' | 'definition' | 'status' | 'labels'>, LabelsRow {
  definition: unknown;
  enabled: boolean;
}

const entryColumns = (
  agents: string,
): string => `id::text, slug, definition, version, enabled, created_at AS "createdAt",
  updated_at AS "updatedAt", ${labelColumns(agents)}`;
const ENTRY = Prisma.raw(entryColumns('written'));
/** The number of a new version. */
const NUMBER = Prisma.raw('1 + greatest(version, newest_version)');
const NO_NEXT = Prisma.raw('next_version = NULL, next_share = NULL, next_failures = NULL, next_since = NULL');
/** $1 tenant, $2 slug, $3 id or null */
const FIND: Statement = {
  text: `SELECT ${entryColumns('agents')} FROM agents
    WHERE tenant_id = $1::uuid AND deleted_at IS NULL AND (slug = $2 OR id = $3::uuid) LIMIT 1`,
};
const VERSION_COLUMNS = Prisma.sql`tenant_id, agent_id, version, definition, enabled, created_by, bytes`;
const BYTES = Prisma.raw(VERSION_BYTES);

/** The agents of tenants' catalogs, with their versions. Each write makes a new version. */
@Injectable()
export class AgentCatalogStore {
  constructor(
    private readonly catalog: CatalogClient,
    @Inject(Environment)
    private readonly environment: Pick<Environment, 'defaultLimits'> = { defaultLimits: DEFAULT_LIMITS },
  ) {}

  /** Rejects with `NameTakenError` if the slug is taken, and with `LimitReachedError` if a limit leaves no room for it. */
  async create({ tenantId, slug, definition, enabled, by }: NewAgent, actor: Actor): Promise<CatalogEntry> {
    await this.purge(tenantId);
    const made = await this.write(
      tenantId,
      Prisma.sql`
        INSERT INTO agents (id, tenant_id, slug, definition, summary, summary_version, enabled)
        VALUES (${randomUUID()}::uuid, ${tenantId}::uuid, ${slug}, ${JSON.stringify(definition)}::json,
          ${summaryOf(definition)}::json, 1, ${enabled})
        ON CONFLICT (tenant_id, slug) WHERE deleted_at IS NULL DO NOTHING
        RETURNING *`,
      { by, action: 'agent.create', actor, kept: { added: 'agents' } },
      // A lock, because the number must not change before the insert.
      'agents are made',
    );
    if (made) return made;
    throw new NameTakenError(`The tenant already has an agent '${slug}'`);
  }

  /** Finds an agent by slug or id. Never finds a deleted one. */
  async find(tenantId: string, slugOrId: string): Promise<CatalogEntry | undefined> {
    if (slugOrId.includes('\0')) return undefined;
    const id = isUuid(slugOrId) ? slugOrId : null;
    const [row] = await this.catalog.queryInTenant<EntryRow>(tenantId, FIND, [tenantId, slugOrId, id]);
    return row && entryOf(row);
  }

  /**
   * Make the next version.
   * @param isUnlimited also where the tenant has no room for it
   * @param promotes the version with the label `next` whose definition it is. No version has the label any longer
   * @returns undefined if the agent has changed meanwhile, or is deleted
   * @throws LimitReachedError
   */
  async change(
    { tenantId, id, version }: AgentKey,
    { definition, enabled, by }: AgentContent,
    actor: Actor,
    { isUnlimited = false, promotes }: { isUnlimited?: boolean; promotes?: number } = {},
  ): Promise<CatalogEntry | undefined> {
    const [labels, condition] =
      promotes === undefined
        ? [Prisma.empty, Prisma.empty]
        : [Prisma.sql`, ${NO_NEXT}, next_ended = NULL`, Prisma.sql`AND next_version = ${promotes}`];
    return this.write(
      tenantId,
      Prisma.sql`
        UPDATE agents SET definition = ${JSON.stringify(definition)}::json, enabled = ${enabled},
          summary = ${summaryOf(definition)}::json, summary_version = ${NUMBER},
          version = ${NUMBER}, updated_at = now() ${labels}
        WHERE tenant_id = ${tenantId}::uuid AND id = ${id}::uuid AND version = ${version} AND deleted_at IS NULL ${condition}
        RETURNING *`,
      {
        by,
        action: promotes === undefined ? 'agent.update' : 'agent.promote',
        actor,
        kept: { isUnlimited },
        ...(promotes !== undefined && { detail: { promoted: promotes } }),
      },
    );
  }

  /**
   * Give a version the label `next`, or another share. The stable version stays.
   * @returns undefined if the agent is deleted, has no such version besides the stable one, or another version has the label that may not
   *   lose it this way
   * @throws LimitReachedError if the tenant has no room for a new version
   */
  async setNext(
    { tenantId, id, share, failures, version, replaces }: NewNext,
    actor: Actor,
  ): Promise<CatalogEntry | undefined> {
    const isNew = typeof version !== 'number';
    const [number, condition] = isNew
      ? [NUMBER, Prisma.empty]
      : [
          Prisma.sql`${version}::int`,
          Prisma.sql`AND version <> ${version} AND EXISTS (SELECT FROM agent_versions v
            WHERE v.tenant_id = ${tenantId}::uuid AND v.agent_id = ${id}::uuid AND v.version = ${version} AND v.erased_at IS NULL)`,
        ];
    const replaced =
      replaces === undefined
        ? Prisma.sql`AND (${share}::int > 0 OR next_version IS NULL OR next_share = 0 OR next_version = ${number})`
        : Prisma.sql`AND next_version IS NOT DISTINCT FROM ${replaces}::int`;
    return this.catalog.change(tenantId, async (prisma, record) => {
      if (!isNew) await lockAgent(prisma, tenantId, id);
      const [row] = await prisma.$queryRaw<EntryRow[]>`
        WITH written AS (
          UPDATE agents SET newest_version = greatest(version, newest_version, ${number}), next_version = ${number},
            next_share = ${share}::int, next_failures = ${failures}::int, next_ended = NULL, updated_at = now(),
            next_since = CASE WHEN next_version = ${number} THEN next_since ELSE now() END
          WHERE tenant_id = ${tenantId}::uuid AND id = ${id}::uuid AND deleted_at IS NULL ${condition} ${replaced}
          RETURNING *
        )
        SELECT ${ENTRY} FROM written`;
      if (!row?.nextVersion) return undefined;
      const detail = { id, version: row.nextVersion, share, failures };
      await record({ action: 'agent.next', target: { kind: 'agent', name: row.slug }, by: actor, detail });
      if (isNew) {
        const [kept] = await prisma.$queryRaw<{ bytes: number }[]>`
          INSERT INTO agent_versions (${VERSION_COLUMNS})
          SELECT tenant_id, id, next_version, v.definition, enabled, ${version.by}, octet_length(v.definition::text)
          FROM agents, (SELECT ${JSON.stringify(version.definition)}::json AS definition) v
          WHERE tenant_id = ${tenantId}::uuid AND id = ${id}::uuid
          RETURNING bytes`;
        const freed = await dropVersions(prisma, { tenantId, id, version: row.nextVersion });
        await this.keepInRoom(prisma, tenantId, { bytes: (kept?.bytes ?? 0) - freed });
      }
      return entryOf(row);
    });
  }

  /**
   * Take the label `next` from that version, or the mark that it has lost it by itself.
   * @param share only if it has the label with this share
   * @returns false if it has neither
   */
  async withdrawNext({ tenantId, id, version }: AgentKey, actor: Actor, share?: number): Promise<boolean> {
    const shared = share === undefined ? Prisma.empty : Prisma.sql`AND next_share = ${share}::int`;
    return this.catalog.change(tenantId, async (prisma, record) => {
      const [row] = await prisma.$queryRaw<{ slug: string }[]>`
        UPDATE agents SET ${NO_NEXT}, next_ended = NULL, updated_at = now()
        WHERE tenant_id = ${tenantId}::uuid AND id = ${id}::uuid AND deleted_at IS NULL
          AND coalesce(next_version, (next_ended->>'version')::int) = ${version} ${shared}
        RETURNING slug`;
      if (!row) return false;
      const target = { kind: 'agent', name: row.slug } as const;
      await record({ action: 'agent.withdraw', target, by: actor, detail: { id, version } });
      return true;
    });
  }

  /**
   * End the share of a version whose runs have failed too often.
   * @returns false if it has ended before
   */
  async endNext({ tenantId, agentId, slug, since, ended }: FailingNext): Promise<boolean> {
    return this.catalog.change(tenantId, async (prisma, record) => {
      const count = await prisma.$executeRaw`
        UPDATE agents SET ${NO_NEXT}, next_ended = ${JSON.stringify(ended)}::jsonb, updated_at = now()
        WHERE tenant_id = ${tenantId}::uuid AND id = ${agentId}::uuid AND next_version = ${ended.version}
          AND next_since = ${since}::timestamptz`;
      if (count === 0) return false;
      const target = { kind: 'agent', name: slug } as const;
      const detail = { id: agentId, ...ended };
      await record({ action: 'agent.withdraw', target, by: PLATFORM_ACTOR, detail });
      return true;
    });
  }

  /**
   * Take an agent out of the catalog. Its row stays for its tasks and its slug is free again.
   * @returns false if it has changed meanwhile, or is deleted
   */
  async remove({ tenantId, id, version }: AgentKey, actor: Actor): Promise<boolean> {
    return this.catalog.change(tenantId, async (prisma, record) => {
      const [removed] = await prisma.catalogAgent.updateManyAndReturn({
        where: { tenantId, id, version, deletedAt: null },
        data: { deletedAt: clock.date() },
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
      version,
      enabled,
      by,
      createdAt,
      erasedAt,
      definition: definition as unknown as AgentDefinition,
    }));
  }

  /**
   * Erase the definition of an earlier version. The version stays in the history.
   * @returns false if it is the present version, was erased before, or does not exist
   */
  async eraseVersion({ tenantId, id, version }: AgentKey, slug: string, actor: Actor): Promise<boolean> {
    return this.catalog.change(tenantId, async (prisma, record) => {
      await lockAgent(prisma, tenantId, id);
      const [erased] = await prisma.$queryRaw<{ bytes: number }[]>`
        WITH present AS (
          SELECT ${BYTES} AS bytes FROM agent_versions
          WHERE tenant_id = ${tenantId}::uuid AND agent_id = ${id}::uuid AND version = ${version}
            AND erased_at IS NULL AND EXISTS (
              SELECT FROM agents a WHERE a.tenant_id = ${tenantId}::uuid AND a.id = ${id}::uuid
                AND a.version <> ${version} AND a.next_version IS DISTINCT FROM ${version}
            )
        )
        UPDATE agent_versions v SET definition = '{}', bytes = octet_length('{}'), erased_at = now() FROM present
        WHERE v.tenant_id = ${tenantId}::uuid AND v.agent_id = ${id}::uuid AND v.version = ${version}
        RETURNING v.bytes - present.bytes AS bytes`;
      if (!erased) return false;
      const target = { kind: 'agent', name: slug } as const;
      await record({ action: 'agent.erase', target, by: actor, detail: { id, version } });
      await this.keepInRoom(prisma, tenantId, erased);
      return true;
    });
  }

  /** Removes the rows of deleted agents without tasks, some time after they were deleted. */
  async purge(tenantId: string): Promise<void> {
    await this.catalog.change(tenantId, async (prisma) => {
      const [gone] = await prisma.$queryRaw<{ bytes: number }[]>`
        WITH gone AS (
          DELETE FROM agents a WHERE a.tenant_id = ${tenantId}::uuid
            AND a.deleted_at < now() - make_interval(hours => ${DELETED_HOURS})
            AND NOT EXISTS (
              SELECT 1 FROM tasks t WHERE t.tenant_id = ${tenantId}::uuid AND t.agent_id = a.id::text
            )
          RETURNING a.id
        )
        SELECT coalesce(sum(${BYTES}), 0)::float8 AS bytes FROM agent_versions
        WHERE tenant_id = ${tenantId}::uuid AND agent_id IN (SELECT id FROM gone)`;
      await this.keepInRoom(prisma, tenantId, { bytes: -(gone?.bytes ?? 0) });
    });
  }

  /**
   * Runs a statement that writes an agent and returns it, and stores the result as a version. Versions that are too many
   * make room.
   */
  private async write(
    tenantId: string,
    statement: Prisma.Sql,
    {
      by,
      action,
      actor,
      kept,
      detail,
    }: {
      by: string;
      action: AuditAction;
      actor: Actor;
      kept: Kept;
      detail?: object;
    },
    alone?: string,
  ): Promise<CatalogEntry | undefined> {
    const write: CatalogChange<CatalogEntry | undefined> = async (prisma, record) => {
      const [row] = await prisma.$queryRaw<(EntryRow & { bytes: number })[]>`
        WITH written AS (${statement}),
        kept AS (
          INSERT INTO agent_versions (${VERSION_COLUMNS})
          SELECT tenant_id, id, version, definition, enabled, ${by}, octet_length(definition::text) FROM written
          RETURNING bytes
        )
        SELECT ${ENTRY}, kept.bytes FROM written, kept`;
      if (!row) return undefined;
      const { id, slug, version, enabled } = row;
      const target = { kind: 'agent', name: slug } as const;
      await record({ action, target, by: actor, detail: { id, version, enabled, ...detail } });
      const freed = version > MAX_VERSIONS ? await dropVersions(prisma, { tenantId, id, version }) : 0;
      await this.keepInRoom(prisma, tenantId, { ...kept, bytes: row.bytes - freed });
      return entryOf(row);
    };
    return this.catalog.change(tenantId, write, alone);
  }

  private async keepInRoom(prisma: Prisma.TransactionClient, tenantId: string, kept: Kept): Promise<void> {
    await keepInRoom(transactionOf(prisma), tenantId, this.environment.defaultLimits, kept);
  }
}

/** The fields of an agent in lists, as JSON. */
const summaryOf = (definition: AgentDefinition): string => {
  const { name, description, runtime, a2aEnabled, skills } = definition;
  return JSON.stringify({
    name,
    description,
    runtime,
    a2aEnabled,
    skills,
    outputSchema: outputSchemaOf(definition),
  });
};

/**
 * Locks an agent before a statement that reads its versions. A statement that waited for the lock itself would still see the versions as
 * they were when it began: a version could be erased while it gets the label `next`.
 */
async function lockAgent(prisma: Prisma.TransactionClient, tenantId: string, id: string): Promise<void> {
  await prisma.$executeRaw`
    SELECT FROM agents WHERE tenant_id = ${tenantId}::uuid AND id = ${id}::uuid FOR NO KEY UPDATE`;
}

/** Deletes the versions that are too many. @returns the bytes that they took */
async function dropVersions(
  prisma: Prisma.TransactionClient,
  { tenantId, id, version }: AgentKey,
): Promise<number> {
  const [dropped] = await prisma.$queryRaw<{ bytes: number }[]>`
    WITH dropped AS (
      DELETE FROM agent_versions
      WHERE tenant_id = ${tenantId}::uuid AND agent_id = ${id}::uuid AND version <= ${version - MAX_VERSIONS}
        AND version NOT IN (SELECT unnest(ARRAY[a.version, a.next_version]) FROM agents a
          WHERE a.tenant_id = ${tenantId}::uuid AND a.id = ${id}::uuid AND a.next_version IS NOT NULL)
      RETURNING ${BYTES} AS bytes
    )
    SELECT coalesce(sum(bytes), 0)::float8 AS bytes FROM dropped`;
  return dropped?.bytes ?? 0;
}

function entryOf(row: EntryRow): CatalogEntry {
  const { id, slug, version, enabled, createdAt, updatedAt, definition } = row;
  return {
    id,
    slug,
    origin: 'catalog',
    version,
    createdAt,
    updatedAt,
    definition: definition as AgentDefinition,
    ...labelsOf(version, row),
    ...(!enabled && { status: 'disabled' }),
  };
}
