import { Environment } from '@baton/config';
import { Logger } from '@baton/telemetry';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { AgentOutput, AgentRuntime, Turn } from '../../runtime.js';
import { AgentPool } from './agent-pool.js';
import { converse } from './converse.js';
import { processOptions } from './process-options.js';
import { turnRequest } from './turn-request.js';

/**
 * Runs an unchanged `AgentExecutor` of `@a2a-js/sdk/server` from the folder `BATON_AGENTS_DIR/<slug>` of the
 * worker, in a process of the agent's own. The database holds no host path, so every worker may keep its agents
 * where it likes.
 */
@Injectable()
export class ExecutorRuntime implements AgentRuntime, OnApplicationShutdown {
  readonly name = 'executor';
  private readonly pools = new Map<string, { settings: string; pool: AgentPool }>();

  constructor(
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {}

  async *run(turn: Turn, signal: AbortSignal): AsyncGenerator<AgentOutput> {
    const pool = this.poolOf(turn.agent);
    const request = await turnRequest(turn);
    const { tenantId, runId, task } = turn;
    const ids = { tenantId, taskId: task.id, runId };
    if (signal.aborted) return;
    const stream = await pool.open(request, ids, turn.runsAlone ?? false, signal);
    if (stream) yield* converse(stream, turn, signal, this.logger);
  }

  /** The runs have ended or were handed back by now. */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all([...this.pools.values()].map(({ pool }) => pool.close()));
  }

  private poolOf({ slug, origin, definition }: Turn['agent']): AgentPool {
    const { agentsDir } = this.environment;
    // Code is the operator's to give: a tenant's own row must not name a folder of theirs.
    if (origin !== 'installed')
      throw new Error(`agent "${slug}" is not an installed agent: it has no code to run`);
    if (!agentsDir) throw new Error(`BATON_AGENTS_DIR is not set: this worker can not run agent "${slug}"`);
    const settings = JSON.stringify(definition.config);
    const known = this.pools.get(slug);
    if (known?.settings === settings) return known.pool;
    const pool = new AgentPool(
      processOptions({ slug, config: definition.config }, this.environment, this.logger),
    );
    this.pools.set(slug, { settings, pool });
    // Its settings have changed: what runs may finish as it is.
    known?.pool.retire();
    return pool;
  }
}
