import type { Agent } from '@baton/a2a';
import { AgentList, BUILTIN_AGENTS } from '@baton/agents';
import { AgentStore, RetentionStore, TaskStore, TenantStore } from '@baton/database';
import { Messaging, type Unsubscribe } from '@baton/messaging';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { LRUCache } from 'lru-cache';

/** A changed catalog shows everywhere within this time even if the control message is lost. */
const CACHE_MS = 1_000;
const CACHE_SIZE = 10_000;
/** Cached in place of an agent that does not exist. */
const NONE = Symbol('no such agent');

/** Finds agents as a tenant sees them: built-ins, its own catalog, and what the operator installed. */
@Injectable()
export class AgentDirectory extends AgentList implements OnModuleInit, OnApplicationShutdown {
  private readonly cache = new LRUCache<string, Agent | typeof NONE>({ max: CACHE_SIZE, ttl: CACHE_MS });
  private stopControl: Unsubscribe | undefined;

  constructor(
    private readonly agents: AgentStore,
    private readonly tenants: TenantStore,
    private readonly tasks: TaskStore,
    private readonly retention: RetentionStore,
    private readonly messaging: Messaging,
  ) {
    super();
  }

  async onModuleInit(): Promise<void> {
    this.stopControl = await this.messaging.subscribeControl((message) => {
      if (message.type === 'catalog-changed') this.forget(message.tenantId);
    });
  }

  onApplicationShutdown(): void {
    this.stopControl?.();
  }

  /** The agents of a tenant have changed: they are looked up again. @param tenantId null = those of all tenants */
  forget(tenantId: string | null): void {
    if (tenantId === null) return this.cache.clear();
    const own = [...this.cache.keys()].filter((key) => key.startsWith(`${tenantId}/`));
    for (const key of own) this.cache.delete(key);
  }

  /**
   * The agent with that slug or id, or undefined when the tenant has none: never another tenant's. It may be
   * disabled.
   */
  async find(tenantId: string, slugOrId: string): Promise<Agent | undefined> {
    const found = await this.findIncludingDeleted(tenantId, slugOrId);
    return found?.closed === 'deleted' ? undefined : found;
  }

  /** Like `find`, and where there is none, the one that was deleted last: for its tasks and runs. */
  async findIncludingDeleted(tenantId: string, slugOrId: string): Promise<Agent | undefined> {
    const builtin = BUILTIN_AGENTS.find((agent) => agent.slug === slugOrId);
    if (builtin) return builtin;
    const key = `${tenantId}/${slugOrId}`;
    let found = this.cache.get(key);
    if (found === undefined) {
      found = (await this.agents.findIncludingDeleted(tenantId, slugOrId)) ?? NONE;
      this.cache.set(key, found);
    }
    return found === NONE ? undefined : found;
  }

  /** Every agent the tenant can call, built-ins first; none that is disabled. */
  override async list(tenantId: string): Promise<Agent[]> {
    const all = await this.agents.list(tenantId);
    return [...BUILTIN_AGENTS, ...all.filter(({ closed }) => closed === undefined)];
  }

  /** The agents of the tenant's own catalog. */
  async own(tenantId: string): Promise<Agent[]> {
    return (await this.agents.list(tenantId)).filter(({ origin }) => origin === 'catalog');
  }

  /**
   * The agent of a task, which is named by its id or by an alias that a caller of the profile has chosen; also of
   * one that was deleted, so that its callers are told.
   */
  async ofTask(tenantId: string, profile: string, idOrAlias: string): Promise<Agent | undefined> {
    const alias = await this.tasks.findAlias({ tenantId, profile, clientId: idOrAlias });
    const taskId = alias?.taskId ?? idOrAlias;
    const stored = await this.tasks.get(tenantId, taskId, { historyLength: 0, artifacts: false });
    const known = stored ?? (await this.retention.findTombstone(tenantId, taskId));
    return known && this.findIncludingDeleted(tenantId, known.agentId);
  }

  /** The agent that answers where none is named; `index` unless the operator has set another. */
  async defaultAgent(tenantId: string): Promise<Agent | undefined> {
    const tenant = await this.tenants.byId(tenantId);
    return this.find(tenantId, tenant?.defaultAgent ?? 'index');
  }
}
