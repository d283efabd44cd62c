import {
  type Agent,
  type AgentDefinition,
  type AgentDocument,
  type AllowedAgents,
  ProtocolError,
  assertAgentSlug,
  isAllowed,
  isAllowedName,
  mayReceive,
  originRefusal,
  parseAgentDocument,
  slugOf,
  writeAgentDefinition,
} from '@baton/a2a';
import {
  BUILTIN_AGENTS,
  assertSchemas,
  calledUrls,
  type SecretUse,
  secretUses,
  withoutHeaderTexts,
} from '@baton/agents';
import { ComputePool } from '@baton/compute';
import { COMMAND_LINE } from '@baton/config';
import {
  type Actor,
  AgentCatalogStore,
  AgentStore,
  agentSummary,
  type AgentSummary,
  type AgentVersion,
  type CatalogEntry,
  type PageAfter,
  SecretStore,
  TenantStore,
} from '@baton/database';
import { explainLimit } from '@baton/identity';
import { Messaging } from '@baton/messaging';
import { egressRefusal } from '@baton/outbound';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { isDeepStrictEqual } from 'node:util';
import {
  assertRunnable,
  explainRefusal,
  defaultAgentError,
  stableVersionError,
  labelRefusal,
  noNextError,
  otherNextError,
  otherShareError,
  concurrentChangeError,
  presentVersionError,
  slugFixedError,
  slugTakenError,
  versionErasedError,
} from './catalog-errors.js';
import { mergePatch } from './merge-patch.js';

/** The reader of agents. */
export interface Viewer {
  tenantId: string;
  /** The agents that exist for it; unset = all. */
  agents?: AllowedAgents | undefined;
}

/** The writer of an agent. */
export interface Author extends Viewer {
  /** `token:<id>` or `operator`. */
  by: string;
  /** The author, for the audit log. */
  actor: Actor;
}

export interface CatalogWriteOptions {
  /** Report the outcome, and write nothing. */
  dryRun?: boolean;
  /** Called with the present agent before it is replaced. Throws to refuse the write. */
  check?: (current: CatalogEntry | undefined) => void;
}

/** The outcome of a write or dry run. An agent that is not created yet has no id. */
export interface CatalogWrite {
  outcome: 'created' | 'updated' | 'unchanged';
  entry: Omit<CatalogEntry, 'id' | 'createdAt' | 'updatedAt'> & Partial<CatalogEntry>;
}

/** What gets the label `next`: a stored version, a new one with that document, or the version that has it. */
export interface WantedNext {
  /** How many of 100 new tasks. */
  share: number;
  /** Failed runs after which it may lose its share. Unset: as it is, or the default. */
  failures?: number | undefined;
  version?: number | undefined;
  document?: AgentDocument | undefined;
  /** Only if this version has the label; null: only if none has it. Unset: a version without a share takes it from none with one. */
  replaces?: number | null | undefined;
}

/** Which version loses the label `next`. */
interface WithdrawnNext {
  /** Unset: the one that has it. */
  version?: number | undefined;
  /** Only if it has this share. */
  share?: number | undefined;
}

/** Failed runs after which a version on trial loses its share: one or two may have another cause. */
const DEFAULT_FAILURES = 5;

/** Maximum tries of a write that conflicts with others. */
const TRIES = 5;

/** The agents of tenants' catalogs. Every write is checked, stored as a version and announced to all processes. */
@Injectable()
export class Catalog {
  constructor(
    private readonly entries: AgentCatalogStore,
    private readonly agents: AgentStore,
    private readonly tenants: TenantStore,
    private readonly secrets: SecretStore,
    private readonly messaging: Messaging,
    private readonly logger: Logger,
    private readonly pool: ComputePool,
  ) {}

  /** A page of the agents that the tenant can see, by slug: built-ins, installed ones, its own; also disabled ones. */
  async page({ tenantId, agents }: Viewer, page: PageAfter): Promise<AgentSummary[]> {
    const builtin = BUILTIN_AGENTS.filter(
      (agent) => isAllowed(agents, agent) && agent.slug > (page.after ?? ''),
    );
    const others = await this.agents.page(tenantId, page, agents?.slugs);
    const found = [...builtin.map(agentSummary), ...others];
    return found.sort((a, b) => (a.slug < b.slug ? -1 : 1)).slice(0, page.limit);
  }

  /** By slug or id. Throws `agent-not-found`. */
  async get({ tenantId, agents }: Viewer, name: string): Promise<Agent | CatalogEntry> {
    const builtin = BUILTIN_AGENTS.find(({ slug }) => slug === name);
    const found =
      builtin ?? (await this.entries.find(tenantId, name)) ?? (await this.agents.find(tenantId, name));
    if (found && isAllowed(agents, found)) return found;
    throw new ProtocolError('agent-not-found', `Agent not found: ${name}`, { metadata: { agent: name } });
  }

  /**
   * Make an agent. Throws `invalid-params`, `forbidden`, `conflict` if its slug is taken, and `limit-exceeded` if a limit
   * of the tenant leaves no room for it.
   */
  async create(
    { tenantId, agents, by, actor }: Author,
    document: AgentDocument,
    { dryRun, check }: CatalogWriteOptions = {},
  ): Promise<CatalogWrite> {
    const { slug = slugOf(document.definition.name), enabled = true, definition } = document;
    assertAgentSlug(slug);
    assertMayWrite(agents, slug);
    await this.assertRunnable(tenantId, definition);
    const current = await this.entries.find(tenantId, slug);
    check?.(current);
    if (current) throw slugTakenError(slug);
    const draft = { slug, origin: 'catalog' as const, version: 1, definition, ...statusOf(!enabled) };
    if (dryRun) return { outcome: 'created', entry: draft };
    const entry = await this.entries
      .create({ tenantId, slug, definition, enabled, by }, actor)
      .catch(explainRefusal(slug));
    await this.announce(tenantId);
    return { outcome: 'created', entry };
  }

  /** Create or replace the agent of that slug. */
  async put(
    author: Author,
    name: string,
    document: AgentDocument,
    options: CatalogWriteOptions = {},
  ): Promise<CatalogWrite> {
    assertMayWrite(author.agents, name);
    const there = await this.entries.find(author.tenantId, name);
    if (there) return this.change(author, name, () => document, options);
    if (document.slug !== undefined && document.slug !== name) throw slugFixedError(name);
    return this.create(author, { ...document, slug: name }, options);
  }

  /** Apply a JSON merge patch (RFC 7396) to an agent's document. */
  patch(
    author: Author,
    name: string,
    patch: unknown,
    options: CatalogWriteOptions = {},
  ): Promise<CatalogWrite> {
    const edit = (current: CatalogEntry): AgentDocument =>
      parseAgentDocument(mergePatch(documentOf(current), patch));
    return this.change(author, name, edit, options);
  }

  /** Make a new version with the contents of an earlier one. Throws `not-found`, and `conflict` if it was erased. */
  async restore(
    author: Author,
    name: string,
    number: number,
    options: CatalogWriteOptions = {},
  ): Promise<CatalogWrite> {
    const { definition, erasedAt } = await this.storedVersion(author, name, number);
    if (erasedAt) throw versionErasedError(name, number);
    return this.change(author, name, () => ({ definition }), options);
  }

  /**
   * Erase the contents of an earlier version, for instance a token that stood in a header. The version stays in the
   * history. Throws `not-found`, and `conflict` for the present version.
   */
  async eraseVersion(author: Author, name: string, number: number): Promise<void> {
    const { id, slug, version } = await this.own(author, name);
    const { erasedAt } = await this.version(author, name, number);
    if (erasedAt) return;
    const key = { tenantId: author.tenantId, id, version: number };
    if (number === version || !(await this.entries.eraseVersion(key, slug, author.actor))) {
      throw presentVersionError(slug, number);
    }
  }

  /**
   * Give a version the label `next`: a share of new tasks begins with it, the others with the stable version.
   * Throws `not-found` if there is no such version, and `conflict` if it was erased, is the stable one, or another version keeps the label.
   * A version with a share loses the label to one without a share only if the caller names it in `replaces`.
   */
  async setNext(author: Author, name: string, wanted: WantedNext): Promise<CatalogEntry> {
    const { tenantId, by, actor } = author;
    const current = await this.own(author, name);
    const {
      share,
      failures = current.labels?.next?.failures ?? DEFAULT_FAILURES,
      document,
      replaces,
    } = wanted;
    const version = document
      ? { definition: await this.nextDefinition(tenantId, current, document), by }
      : await this.storedNext(author, name, current, wanted.version);
    const entry = await this.entries
      .setNext({ tenantId, id: current.id, share, failures, version, replaces }, actor)
      .catch(explainLimit);
    if (!entry) {
      const { labels } = await this.own(author, name);
      throw labelRefusal(name, labels?.next, wanted) ?? concurrentChangeError(name);
    }
    await this.announce(tenantId);
    return entry;
  }

  private async nextDefinition(
    tenantId: string,
    current: CatalogEntry,
    { slug = current.slug, enabled, definition }: AgentDocument,
  ): Promise<AgentDefinition> {
    if (slug !== current.slug) throw slugFixedError(current.slug);
    if (enabled !== undefined && enabled !== (current.status === undefined)) {
      throw ProtocolError.invalidParams('enabled', 'is for the whole agent: enable or disable that');
    }
    await this.assertRunnable(tenantId, definition);
    return definition;
  }

  private async storedNext(
    author: Author,
    name: string,
    { version: stable, labels }: CatalogEntry,
    version = labels?.next?.version,
  ): Promise<number> {
    if (version === undefined) {
      throw ProtocolError.invalidParams(
        'version',
        'is missing: name a stored version, or give the agent in `agent`',
      );
    }
    if (version === stable) throw stableVersionError(name, version);
    const { erasedAt } = await this.storedVersion(author, name, version);
    if (erasedAt) throw versionErasedError(name, version);
    return version;
  }

  /** Make the version with the label `next` the stable one, as a new version. Throws `conflict` if none has it. */
  async promoteNext(author: Author, name: string): Promise<CatalogEntry> {
    const { tenantId, by, actor } = author;
    for (let tries = 0; tries < TRIES; tries++) {
      const current = await this.own(author, name);
      const promotes = current.labels?.next?.version;
      if (promotes === undefined) throw noNextError(name);
      const { definition, erasedAt } = await this.storedVersion(author, name, promotes);
      if (erasedAt) throw versionErasedError(name, promotes);
      const content = { definition, enabled: current.status === undefined, by };
      await this.assertRunnable(tenantId, definition);
      const entry = await this.entries
        .change({ tenantId, ...current }, content, actor, { promotes })
        .catch(explainLimit);
      if (!entry) continue;
      await this.announce(tenantId);
      return entry;
    }
    throw concurrentChangeError(name);
  }

  /**
   * Take the label `next` away, or the mark that it has ended by itself. Throws `conflict` if there is neither, or if the version that is
   * named does not have it.
   */
  async withdrawNext(author: Author, name: string, wanted: WithdrawnNext = {}): Promise<void> {
    const { tenantId, actor } = author;
    for (let tries = 0; tries < TRIES; tries++) {
      const { id, labels } = await this.own(author, name);
      const version = labels?.next?.version ?? labels?.ended?.version;
      if (version === undefined) throw noNextError(name);
      if (wanted.version !== undefined && wanted.version !== version) {
        throw otherNextError(name, version, wanted.version);
      }
      if (wanted.share !== undefined && wanted.share !== labels?.next?.share) {
        throw otherShareError(name, version, labels?.next?.share);
      }
      if (!(await this.entries.withdrawNext({ tenantId, id, version }, actor, wanted.share))) continue;
      await this.announce(tenantId);
      return;
    }
    throw concurrentChangeError(name);
  }

  /** Delete an agent from the catalog. Its running tasks finish. */
  async remove(
    { tenantId, agents, actor }: Author,
    name: string,
    { check }: CatalogWriteOptions = {},
  ): Promise<CatalogEntry> {
    for (let tries = 0; tries < TRIES; tries++) {
      const current = await this.own({ tenantId, agents }, name);
      check?.(current);
      const tenant = await this.tenants.byId(tenantId);
      if (tenant?.defaultAgent === current.slug) throw defaultAgentError(current.slug, tenant.slug);
      if (await this.entries.remove({ tenantId, id: current.id, version: current.version }, actor)) {
        await this.announce(tenantId);
        return current;
      }
    }
    throw concurrentChangeError(name);
  }

  /** The newest first, at most `limit` of those before the version `before`. */
  async versions(viewer: Viewer, name: string, limit: number, before?: number): Promise<AgentVersion[]> {
    const { id } = await this.own(viewer, name);
    return this.entries.versions(viewer.tenantId, id, limit, before);
  }

  /**
   * A version as it is shown. Earlier ones do not have the texts of headers and environments: the author may have replaced a
   * credential by a secret since then. Throws `not-found`.
   */
  async version(viewer: Viewer, name: string, number: number): Promise<AgentVersion> {
    const { version: newest, labels } = await this.own(viewer, name);
    const stored = await this.storedVersion(viewer, name, number);
    if (number === newest || number === labels?.next?.version || stored.erasedAt) return stored;
    return { ...stored, definition: withoutHeaderTexts(stored.definition) };
  }

  private async storedVersion(viewer: Viewer, name: string, number: number): Promise<AgentVersion> {
    const [found] = await this.versions(viewer, name, 1, number + 1);
    if (found?.version === number) return found;
    throw new ProtocolError('not-found', `Version not found: ${number} of the agent ${name}`);
  }

  private async change(
    { tenantId, agents, by, actor }: Author,
    name: string,
    edit: (current: CatalogEntry) => AgentDocument,
    { dryRun, check }: CatalogWriteOptions,
  ): Promise<CatalogWrite> {
    for (let tries = 0; tries < TRIES; tries++) {
      const current = await this.own({ tenantId, agents }, name);
      check?.(current);
      const { slug = current.slug, enabled = current.status === undefined, definition } = edit(current);
      if (slug !== current.slug) throw slugFixedError(current.slug);
      const { status: _, ...kept } = current;
      const next = { ...kept, definition, ...statusOf(!enabled), version: newVersionOf(current) };
      if (isSame(next, current)) return { outcome: 'unchanged', entry: current };
      // A stored agent can always be disabled, even if its runtime's rules have changed since, or if there is no room.
      const isSwitched = isSame(next, { ...current, status: next.status });
      if (!isSwitched) await this.assertRunnable(tenantId, definition);
      if (dryRun) return { outcome: 'updated', entry: next };
      const content = { definition, enabled, by };
      const entry = await this.entries
        .change({ tenantId, ...current }, content, actor, { isUnlimited: isSwitched && !enabled })
        .catch(explainLimit);
      if (!entry) continue;
      await this.announce(tenantId);
      return { outcome: 'updated', entry };
    }
    throw concurrentChangeError(name);
  }

  private async assertRunnable(tenantId: string, definition: AgentDocument['definition']): Promise<void> {
    assertRunnable(definition);
    await this.assertEgress(tenantId, definition);
    await this.assertSecrets(tenantId, definition);
    await assertSchemas(this.pool, tenantId, definition);
  }

  /**
   * Throws `secret-refused` if the agent would send a secret to a place that may not receive it. A run checks this
   * again. A secret that does not exist yet is no reason to refuse the agent.
   */
  private async assertSecrets(tenantId: string, definition: AgentDocument['definition']): Promise<void> {
    const uses = secretUses(definition);
    if (uses.length === 0) return;
    const known = await this.secrets.origins(tenantId, [...new Set(uses.map(({ secret }) => secret))]);
    const violations = uses.flatMap(({ field, secret, destinations }) => {
      const origins = known.get(secret) ?? null;
      const refused = destinations.find((destination) => !mayReceive(origins, destination));
      return refused === undefined
        ? []
        : [{ field, description: originRefusal(secret, refused, COMMAND_LINE) }];
    });
    if (violations.length === 0) return;
    const message = violations.map(({ field, description }) => `${field}: ${description}`).join('; ');
    throw new ProtocolError('secret-refused', message, { violations });
  }

  /** The secrets that an agent needs and its tenant does not have. It can be stored without them, and fails when it runs. */
  async missingSecrets(tenantId: string, definition: AgentDocument['definition']): Promise<SecretUse[]> {
    const needed = secretUses(definition).filter(({ isOptional }) => isOptional !== true);
    if (needed.length === 0) return [];
    const known = await this.secrets.origins(tenantId, [...new Set(needed.map(({ secret }) => secret))]);
    return needed.filter(({ secret }) => !known.has(secret));
  }

  /**
   * Throws `egress-refused` if the agent would call what the lists of the tenant refuse by its name. A run checks the
   * addresses, too.
   */
  private async assertEgress(tenantId: string, definition: AgentDocument['definition']): Promise<void> {
    const urls = calledUrls(definition);
    const tenant = urls.length > 0 ? await this.tenants.byId(tenantId) : undefined;
    if (!tenant) return;
    const lists = { allow: tenant.egressAllow, deny: tenant.egressDeny };
    const violations = urls.flatMap(({ field, url }) => {
      const description = egressRefusal(lists, url);
      return description === undefined ? [] : [{ field, description }];
    });
    if (violations.length === 0) return;
    const message = violations.map(({ field, description }) => `${field}: ${description}`).join('; ');
    throw new ProtocolError('egress-refused', message, { violations });
  }

  /** An agent that the tenant may change. Throws `conflict` for others it can see. */
  private async own(viewer: Viewer, name: string): Promise<CatalogEntry> {
    const found = await this.get(viewer, name);
    if (isEntry(found)) return found;
    const why =
      found.origin === 'builtin'
        ? 'is built in: only agents of the catalog can be changed or removed'
        : 'is installed by the operator, in BATON_AGENTS_DIR: create an agent with the same slug to replace it for your tenant';
    throw new ProtocolError('conflict', `"${found.slug}" ${why}`);
  }

  private async announce(tenantId: string): Promise<void> {
    try {
      await this.messaging.publishControl({ type: 'catalog-changed', tenantId });
    } catch (err) {
      // The change still takes effect: no process uses its cache for longer than a second.
      this.logger.warn('could not inform other processes of a changed agent', { err, tenantId });
    }
  }
}

const newVersionOf = ({ version, labels }: CatalogEntry): number =>
  1 + Math.max(version, labels?.newest ?? 0);

/** Throws `forbidden`, whether there is such an agent or not. */
function assertMayWrite(agents: AllowedAgents | undefined, name: string): void {
  if (isAllowedName(agents, name)) return;
  throw new ProtocolError('forbidden', `the token may write only the agents ${agents?.slugs.join(', ')}`);
}

/** An agent as its author would write it. */
const documentOf = ({ slug, status, definition }: Pick<CatalogEntry, 'slug' | 'status' | 'definition'>) => ({
  slug,
  enabled: status === undefined,
  ...writeAgentDefinition(definition),
});

const isEntry = (agent: Agent | CatalogEntry): agent is CatalogEntry => 'createdAt' in agent;

const statusOf = (disabled: boolean): Pick<Agent, 'status'> => (disabled ? { status: 'disabled' } : {});

/** Whether two versions are equal, in whatever order. */
const isSame = (
  one: Pick<Agent, 'status' | 'definition'>,
  other: Pick<Agent, 'status' | 'definition'>,
): boolean =>
  one.status === other.status && isDeepStrictEqual(asStored(one.definition), asStored(other.definition));

// oxlint-disable-next-line no-restricted-properties -- a copy of what is in memory
const asStored = (definition: Agent['definition']): unknown => JSON.parse(JSON.stringify(definition));
