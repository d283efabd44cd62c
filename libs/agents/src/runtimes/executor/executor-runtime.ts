import { Environment } from '@baton/config';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { join } from 'node:path';
import type { AgentOutput, AgentRuntime, Turn } from '../../runtime.js';
import { converse } from './converse.js';
import { executorConfig } from './executor-config.js';
import { type ExecutorFactory, loadExecutor } from './load-executor.js';

/**
 * Runs an unchanged `AgentExecutor` of `@a2a-js/sdk/server` from the folder `BATON_AGENTS_DIR/<slug>` of the
 * worker. The database holds no host path, so every worker may keep its agents where it likes.
 */
@Injectable()
export class ExecutorRuntime implements AgentRuntime {
  readonly name = 'executor';
  private readonly loaded = new Map<string, Promise<ExecutorFactory>>();

  constructor(
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {}

  async *run(turn: Turn, signal: AbortSignal): AsyncGenerator<AgentOutput> {
    const createExecutor = await this.factoryOf(turn.agent);
    yield* converse(createExecutor(), turn, signal, this.logger);
  }

  private factoryOf({ slug, origin, definition }: Turn['agent']): Promise<ExecutorFactory> {
    const { agentsDir } = this.environment;
    // Code is the operator's to give: a tenant's own row must not name a folder of theirs.
    if (origin !== 'installed')
      throw new Error(`agent "${slug}" is not an installed agent: it has no code to run`);
    if (!agentsDir) throw new Error(`BATON_AGENTS_DIR is not set: this worker can not run agent "${slug}"`);
    const { module } = executorConfig.parse(definition.config);
    const key = join(slug, module ?? '');
    let factory = this.loaded.get(key);
    if (!factory) {
      factory = loadExecutor(join(agentsDir, slug), module);
      this.loaded.set(key, factory);
      // Not there yet, perhaps: the next turn looks again.
      factory.catch(() => this.loaded.delete(key));
    }
    return factory;
  }
}
