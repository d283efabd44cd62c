import { loadInstalledAgents } from '@baton/agents';
import { Environment } from '@baton/config';
import { AgentStore } from '@baton/database';
import { Messaging } from '@baton/messaging';
import { WorkerPresence } from '@baton/tasks';
import { Logger } from '@baton/telemetry';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { join } from 'node:path';

/** Registers the agents of `BATON_AGENTS_DIR` at boot, so that every API process knows them, and which could not be loaded. */
@Injectable()
export class InstalledAgents implements OnModuleInit {
  constructor(
    private readonly agents: AgentStore,
    private readonly presence: WorkerPresence,
    private readonly messaging: Messaging,
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {}

  async onModuleInit(): Promise<void> {
    const { agentsDir } = this.environment;
    if (!agentsDir) return;
    const { agents, failures } = await loadInstalledAgents(agentsDir, this.environment, this.logger);
    // One broken folder must not keep the others from working.
    for (const { slug, file, line, reason } of failures) {
      const at = line === null ? '' : `:${line}`;
      this.logger.error(`${join(agentsDir, file)}${at}: ${reason}`, { agentsDir, agent: slug });
    }
    if (failures.length > 0) await this.presence.reportFailures(failures);
    for (const { slug, definition, tenants } of agents) await this.agents.install(slug, definition, tenants);
    if (agents.length > 0) await this.messaging.publishControl({ type: 'catalog-changed', tenantId: null });
    this.logger.info('agents installed', { agentsDir, agents: agents.map(({ slug }) => slug) });
  }
}
