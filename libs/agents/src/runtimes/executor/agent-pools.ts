import type { AgentDefinition } from '@baton/a2a';
import { Environment } from '@baton/config';
import { Logger } from '@baton/telemetry';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { Turn } from '../../agent-runtime.js';
import { InstalledCode } from '../../installed-code.js';
import { AgentPool } from './agent-pool.js';
import { processOptions, turnSettings } from './executor-config.js';
import { ProcessSlots } from './process-slots.js';
import type { LoadFault } from './protocol.js';
import { functionFiles } from './function-files.js';

/** An `InstalledAgent`, as its folder has it. */
interface AgentFolder {
  slug: string;
  /** Hash of its code. */
  code: string;
  definition: Pick<AgentDefinition, 'runtime' | 'config' | 'versions'>;
}

interface PoolOfAgent {
  /** Slug of the agent; of a pinned one also the hash of its code: `slug@hash`. Only code that is not pinned is replaced. */
  name: string;
  /** JSON of the settings of its `agent.yaml`. */
  settings: string;
  pool: AgentPool;
  /** Hash of the code that its processes run. Undefined: unknown. */
  code: string | undefined;
}

/** The processes of the installed agents in this worker. Each agent, or each agent and tenant, has a pool of them. */
@Injectable()
export class AgentPools implements OnApplicationShutdown {
  /** By agent, or by agent and tenant. */
  private readonly pools = new Map<string, PoolOfAgent>();
  private readonly slots: ProcessSlots;

  constructor(
    private readonly environment: Environment,
    private readonly logger: Logger,
    private readonly code: InstalledCode,
  ) {
    this.slots = new ProcessSlots(environment.executorTenantProcesses);
  }

  /** All runs have ended or returned to the queue before this call. */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all([...this.pools.values()].map(({ pool }) => pool.close()));
  }

  /** The processes for a turn, with the code of its agent that the turn must run. */
  poolFor({ tenantId, agent }: Pick<Turn, 'tenantId' | 'agent'>): PoolOfAgent {
    const { slug, definition, code: pinned, folder } = agent;
    const isolated = isIsolated(definition) ? { tenantId, slots: this.slots } : undefined;
    const name = pinned === undefined ? slug : `${slug}@${pinned}`;
    const key = isolated ? `${name} ${tenantId}` : name;
    const settings = JSON.stringify(definition.config);
    const known = this.pools.get(key);
    // In development only `reload` replaces code: after a broken save a new pool could not load it.
    if (known && (known.settings === settings || this.environment.devMode)) return known;
    const options = processOptions({ slug, definition, folder }, this.environment, this.logger, isolated);
    const pool: AgentPool = new AgentPool({
      ...options,
      onEmpty: isolated || pinned !== undefined ? () => this.forget(key, pool) : undefined,
    });
    const made = { name, settings, pool, code: this.code.codeOf(agent) };
    this.pools.set(key, made);
    // The settings have changed. Running turns finish with the old ones.
    known?.pool.retire();
    return made;
  }

  /**
   * Loads an agent of `BATON_AGENTS_DIR` again, because its files have changed. Running turns end with the old code, and
   * new turns run the new one. If it cannot be loaded, the old code continues.
   *
   * @param signal ends the attempt, for a module that is still loading
   * @returns why it could not be loaded; undefined if it is loaded
   */
  async reload({ slug, code, definition }: AgentFolder, signal: AbortSignal): Promise<LoadFault | undefined> {
    const options = processOptions({ slug, definition }, this.environment, this.logger);
    const hasCode = options.code.kind !== 'tools' || (await functionFiles(options.code.folder)).length > 0;
    if (!hasCode) {
      this.replace({ slug, code }, undefined);
      return undefined;
    }
    const pool = new AgentPool(options);
    const abandon = (): void => void pool.close();
    signal.addEventListener('abort', abandon);
    const fault = await pool.warmUp();
    signal.removeEventListener('abort', abandon);
    if (fault) {
      await pool.close();
      return fault;
    }
    // Its turns run in processes of a tenant, or of pinned code. Such a process starts with its first turn.
    const runsElsewhere =
      isIsolated(definition) || (definition.versions === 'pinned' && !this.environment.devMode);
    if (runsElsewhere) await pool.close();
    const settings = JSON.stringify(definition.config);
    this.replace({ slug, code }, runsElsewhere ? undefined : { name: slug, settings, pool, code });
    return undefined;
  }

  private replace(
    { slug, code }: Pick<AgentFolder, 'slug' | 'code'>,
    by: PoolOfAgent | undefined,
  ): undefined {
    this.code.set({ slug, code });
    for (const [key, known] of this.pools) {
      if (known.name !== slug) continue;
      this.pools.delete(key);
      known.pool.retire();
    }
    if (by) this.pools.set(slug, by);
  }

  /** There may be many tenants: only those with a process have a pool. */
  private forget(key: string, pool: AgentPool): void {
    pool.retire();
    if (this.pools.get(key)?.pool === pool) this.pools.delete(key);
  }
}

const isIsolated = (definition: AgentFolder['definition']): boolean =>
  turnSettings(definition).isolation === 'tenant';
