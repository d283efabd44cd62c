import { type Agent, type AllowedAgents, type ListedAgent, type Reacher, canSee, ownTasks } from '@baton/a2a';
import { AgentList, BUILTIN_AGENTS } from '@baton/agents';
import { AgentStore, type OwnAgent, RetentionStore, TaskStore, TenantStore } from '@baton/database';
import { Messaging, TenantCache } from '@baton/messaging';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { LRUCache } from 'lru-cache';

/** A changed catalog shows everywhere within this time even if the control message is lost. */
const CACHE_MS = 1_000;

/** Lists of slugs only help callers with a wrong name, so they may be a little older. */
const SLUGS_CACHE_MS = 5_000;
/** Tenants whose lists a process keeps. */
const MAX_SLUG_LISTS = 100;

/** Finds the agents of a tenant: built-ins, its own catalog, and what the operator installed. */
@Injectable()
export class AgentDirectory extends AgentList implements OnModuleInit, OnApplicationShutdown {
  private readonly cache: TenantCache<Agent>;
  private readonly slugLists: LRUCache<string, readonly string[]>;

  constructor(
    private readonly agents: AgentStore,
    private readonly tenants: TenantStore,
    private readonly tasks: TaskStore,
    private readonly retention: RetentionStore,
    messaging: Messaging,
  ) {
    super();
    this.cache = new TenantCache(messaging, {
      load: async (key) => {
        const end = key.indexOf('/');
        return agents.findIncludingDeleted(key.slice(0, end), key.slice(end + 1));
      },
      ttlMs: CACHE_MS,
      staleAfter: (message) => {
        if (message.type !== 'catalog-changed') return 'none';
        return message.tenantId === null ? 'all' : isOf(message.tenantId);
      },
    });
    this.slugLists = new LRUCache<string, readonly string[]>({
      max: MAX_SLUG_LISTS,
      ttl: SLUGS_CACHE_MS,
      fetchMethod: async (tenantId) => [
        ...BUILTIN_AGENTS.map(({ slug }) => slug),
        ...(await agents.slugs(tenantId)),
      ],
    });
  }

  async onModuleInit(): Promise<void> {
    await this.cache.start();
  }

  onApplicationShutdown(): void {
    this.cache.stop();
  }

  /** The agents of a tenant have changed: read them again. */
  forget(tenantId: string): void {
    this.cache.forget(isOf(tenantId));
  }

  /**
   * The agent with that slug or id, or undefined when the tenant has none: never another tenant's. It may be
   * disabled.
   */
  override async find(tenantId: string, slugOrId: string): Promise<Agent | undefined> {
    const found = await this.findIncludingDeleted(tenantId, slugOrId);
    return found?.status === 'deleted' ? undefined : found;
  }

  /** Like `find`. If there is no such agent, returns the one that was deleted last, for its tasks and runs. */
  async findIncludingDeleted(tenantId: string, slugOrId: string): Promise<Agent | undefined> {
    const builtin = BUILTIN_AGENTS.find((agent) => agent.slug === slugOrId);
    if (builtin) return builtin;
    return this.cache.get(`${tenantId}/${slugOrId}`);
  }

  /** Every enabled agent that the tenant can call, built-ins first. Reads no settings of agents. */
  override async list(tenantId: string): Promise<ListedAgent[]> {
    const all = await this.agents.list(tenantId);
    return [...BUILTIN_AGENTS, ...all.filter(({ status }) => status === undefined)];
  }

  /** The slugs of those agents, as they were a few seconds ago. Many callers with wrong names cost one query. */
  async slugs(tenantId: string): Promise<readonly string[]> {
    return (await this.slugLists.fetch(tenantId)) ?? [];
  }

  /** The agents of the tenant's own catalog, without their definitions. */
  async own(tenantId: string): Promise<OwnAgent[]> {
    return this.agents.own(tenantId);
  }

  /**
   * The agent of a task that the caller sees. The task is named by its id, or by an alias that the caller has chosen in
   * the profile. Also finds a deleted task's agent, so that
   * its callers get the right error.
   */
  async ofTask(
    caller: Reacher & { tenantId: string },
    profile: string,
    idOrAlias: string,
  ): Promise<Agent | undefined> {
    const { tenantId } = caller;
    const alias = await this.tasks.findAlias({
      tenantId,
      profile,
      clientId: idOrAlias,
      own: ownTasks(caller),
    });
    const taskId = alias?.taskId ?? idOrAlias;
    const stored = await this.tasks.get(tenantId, taskId, { historyLength: 0, artifacts: false });
    const known = stored ?? (await this.retention.findTombstone(tenantId, taskId));
    if (!known || !canSee(caller, known)) return undefined;
    return this.findIncludingDeleted(tenantId, known.agentId);
  }

  /** The agents of that list of a token, as they are now. The tasks of deleted agents are still there. */
  async allowed(tenantId: string, slugs: readonly string[]): Promise<AllowedAgents> {
    const found = await Promise.all(slugs.map((slug) => this.findIncludingDeleted(tenantId, slug)));
    return { slugs, ids: found.flatMap((agent) => agent?.id ?? []) };
  }

  /** The agent for calls that name none: `index`, unless the operator has set another. */
  async defaultAgent(tenantId: string): Promise<Agent | undefined> {
    const tenant = await this.tenants.byId(tenantId);
    return this.find(tenantId, tenant?.defaultAgent ?? 'index');
  }
}

const isOf =
  (tenantId: string) =>
  (key: string): boolean =>
    key.startsWith(`${tenantId}/`);
