import {
  AgentPools,
  AgentWatch,
  filesInReach,
  FolderPoll,
  type InstalledAgent,
  InstalledCode,
  type LoadFailure,
  loadInstalledAgents,
  missingSandboxReason,
  packAgent,
  TooLargeToKeep,
} from '@baton/agents';
import { Environment, secretFiles } from '@baton/config';
import { AgentStore } from '@baton/database';
import { Messaging } from '@baton/messaging';
import { WorkerPresence } from '@baton/tasks';
import { type LogContext, Logger } from '@baton/telemetry';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { join } from 'node:path';

/**
 * Stores the agents of `BATON_AGENTS_DIR` for all API processes at boot, and the errors of those that could not be loaded. Stores an
 * agent again when its files change.
 */
@Injectable()
export class InstalledAgents implements OnModuleInit, OnApplicationShutdown {
  private watch: AgentWatch | undefined;

  constructor(
    private readonly agents: AgentStore,
    private readonly presence: WorkerPresence,
    private readonly messaging: Messaging,
    private readonly environment: Environment,
    private readonly logger: Logger,
    private readonly modules: ModuleRef,
  ) {}

  async onModuleInit(): Promise<void> {
    const { agentsDir, devMode } = this.environment;
    if (!agentsDir) return;
    this.warnOfReadableSecrets();
    const poll = devMode ? undefined : await FolderPoll.begin(agentsDir);
    const found = await loadInstalledAgents(agentsDir, this.environment, this.logger);
    const { failures } = found;
    const agents = await Promise.all(found.agents.map((agent) => this.storeCode(agentsDir, agent)));
    // One broken folder must not keep the others from working.
    for (const failure of failures) this.reportFailure(agentsDir, failure);
    if (failures.length > 0) await this.presence.reportFailures(failures);
    const code = this.modules.get(InstalledCode, { strict: false });
    for (const agent of agents) code.set(agent);
    await this.install(agents);
    this.logger.info('agents installed', { agentsDir, agents: agents.map(({ slug }) => slug) });
    const atStart = { agents, failures };
    const options = {
      pools: this.modules.get(AgentPools, { strict: false }),
      keep: (agent: InstalledAgent) => this.storeCode(agentsDir, agent),
      install: (agent: InstalledAgent) => this.install([agent]),
      report: (level: 'info' | 'error', text: string) => this.report(level, text),
      reportFailure: (failure: LoadFailure) => this.reportFailure(agentsDir, failure),
      storeFailures: (all: readonly LoadFailure[]) => this.presence.reportFailures(all),
    };
    this.watch = poll
      ? AgentWatch.poll(agentsDir, poll, atStart, options)
      : await AgentWatch.start(agentsDir, atStart, options);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.watch?.close();
  }

  private async install(agents: readonly InstalledAgent[]): Promise<void> {
    for (const { slug, definition, tenants } of agents) await this.agents.install(slug, definition, tenants);
    if (agents.length === 0) return;
    await this.presence.reportCodes(agents);
    await this.messaging.publishControl({ type: 'catalog-changed', tenantId: null });
  }

  /** Tasks that begin with this code continue with it, in every worker. Returns the agent with the hash of what is kept. */
  private async storeCode(agentsDir: string, agent: InstalledAgent): Promise<InstalledAgent> {
    const { slug, definition } = agent;
    if (definition.versions !== 'pinned') return agent;
    try {
      const { archive, code } = await packAgent(agentsDir, slug);
      await this.agents.keepArchive(slug, code, archive);
      return { ...agent, code };
    } catch (error) {
      if (!(error instanceof TooLargeToKeep)) throw error;
      const text = `The code of the agent ${slug} cannot be kept, so its tasks continue with the newest: ${error.message}`;
      this.report('warn', text, { agent: slug });
      return agent;
    }
  }

  private warnOfReadableSecrets(): void {
    const missing = missingSandboxReason(this.environment);
    if (missing !== undefined) {
      this.report(
        'warn',
        `Agents in code have no sandbox: ${missing}. They can read all files of this user (docs/agents/executors.md).`,
      );
      return;
    }
    for (const file of filesInReach(secretFiles(), this.environment)) {
      this.report(
        'warn',
        `Agents in code can read ${file}, which has secrets of Baton. Move it out of BATON_AGENTS_DIR, EXECUTOR_READ, ` +
          'EXECUTOR_WRITE and the folders of the system.',
      );
    }
  }

  private reportFailure(agentsDir: string, { slug, file, line, reason }: LoadFailure): void {
    const at = line === null ? '' : `:${line}`;
    const fields = slug === null ? { agentsDir } : { agentsDir, agent: slug };
    this.report('error', `${join(agentsDir, file)}${at}: ${reason}`, fields);
  }

  /** To the log, and to the terminal of `npm start`. */
  private report(level: 'info' | 'warn' | 'error', text: string, fields: LogContext = {}): void {
    this.logger[level](text, fields);
    process.send?.({ type: 'notice', text });
  }
}
