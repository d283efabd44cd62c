import type { Agent, AgentLabel } from '@baton/a2a';
import { JournalMismatch, KeptCode, type LoadFailure } from '@baton/agents';
import { Environment } from '@baton/config';
import {
  AgentStore,
  type ClaimedRun,
  DatabaseUnavailableError,
  isTransient,
  RunStore,
  type RunVersion,
} from '@baton/database';
import { Logger, messageOf } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { undoneBy } from '../forks/fork-metadata.js';

/** Finds the version that a task runs: of agents that pin their tasks (`versions: pinned`), and of agents with labels. */
@Injectable()
export class PinnedAgents {
  private readonly kept = new KeptCode();

  constructor(
    private readonly runs: RunStore,
    private readonly agents: AgentStore,
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {}

  /**
   * The agent as a run must execute it.
   * @param agent the newest version. Its definition decides whether its tasks are pinned
   * @param code hash of the code that is there now, of an installed agent
   * @returns `agent`, if the task is not pinned, or its version is no longer there. A pinned task of an installed agent runs the kept
   * copy of its code, also of the newest: files in `BATON_AGENTS_DIR` may change at any time
   * @throws JournalMismatch if its code is kept, but this worker cannot use it, as on a full disk: other code would be wrong
   */
  async versionFor(run: ClaimedRun, agent: Agent, code: string | undefined): Promise<Agent> {
    const isPinned = agent.definition.versions === 'pinned';
    if ((!isPinned && !agent.labels) || agent.origin === 'builtin') return agent;
    const begun = await this.begunWith(run, agent);
    if (isPinned && agent.origin === 'installed') {
      const pinned = await this.withCode(agent, begun?.code ?? code, code);
      if (pinned) return begun?.label ? { ...pinned, label: begun.label } : pinned;
    } else {
      if (!begun) return agent;
      if (!isPinned) return latestOf(agent, begun.label);
      const pinned = await this.ofCatalog(run.tenantId, agent, begun.version);
      if (pinned) return begun.label ? { ...pinned, label: begun.label } : pinned;
    }
    this.logger.warn('the version with which a task began is no longer there: it continues with the newest', {
      tenantId: run.tenantId,
      taskId: run.taskId,
      agent: agent.slug,
      version: begun?.version ?? begun?.code,
    });
    return agent;
  }

  /** Undefined: the task begins now, or nothing is known. */
  private async begunWith(run: ClaimedRun, agent: Agent): Promise<RunVersion | undefined> {
    // The version that has made the steps also undoes them.
    const undone = undoneBy(run.snapshot.task);
    // An agent with labels got its version when the task was accepted.
    if (!undone && !agent.labels && run.attempt === 1 && run.runId === run.taskId) return undefined;
    return this.runs.begunWith(run.tenantId, undone ?? run.taskId);
  }

  private async ofCatalog(
    tenantId: string,
    agent: Agent,
    version: number | undefined,
  ): Promise<Agent | undefined> {
    if (version === undefined || version === agent.version) return agent;
    const definition = await this.agents.version(tenantId, agent.id, version);
    return definition && { ...agent, definition, version };
  }

  /**
   * The agent with a kept copy of its code, and the `agent.yaml` in it.
   * @param now the code that is installed here
   * @returns undefined if the code is not kept; `agent` if that is the code that is installed
   */
  private async withCode(
    agent: Agent,
    code: string | undefined,
    now: string | undefined,
  ): Promise<Agent | undefined> {
    const { slug } = agent;
    const { agentsDir, devMode } = this.environment;
    if (code === undefined || !agentsDir) return agent;
    // In development, stack traces name the files of the author, and each change of them is loaded at once.
    if (devMode && code === now) return agent;
    const kept = await this.copyOf({ slug, code, directory: agentsDir });
    if (!kept) return code === now ? agent : undefined;
    if (Array.isArray(kept.read)) throw unreadable(slug, code, kept.read);
    return { ...agent, definition: kept.read.definition, code, folder: kept.folder };
  }

  private async copyOf(agent: {
    slug: string;
    code: string;
    directory: string;
  }): ReturnType<KeptCode['unpack']> {
    const { slug, code } = agent;
    try {
      return await this.kept.unpack(() => this.agents.archive(slug, code), agent);
    } catch (error) {
      // It is there again when Postgres is: other code would be wrong.
      if (isTransient(error) || error instanceof DatabaseUnavailableError) throw error;
      this.logger.error('the kept code of an agent cannot be used', { err: error, agent: slug, code });
      // With the hash of the kept code the run is tried again: soon for the first time, then every minute, by any worker.
      const problem = `The code with which the task began (${code}) is kept, but a worker could not unpack it: ${messageOf(error)}`;
      throw new JournalMismatch(slug, problem, code);
    }
  }
}

/** The `agent.yaml` of an earlier release is not valid for this one. A worker of another release may read it. */
function unreadable(slug: string, code: string, failures: readonly LoadFailure[]): JournalMismatch {
  const reasons = failures.map(
    ({ file, line, reason }) => `${file}${line === null ? '' : `:${line}`}: ${reason}`,
  );
  const problem =
    `The code with which the task began (${code}) is kept, but this release of Baton cannot read its ${reasons.join('; ')}. ` +
    'Run a worker of a release that can, or deploy the agent without `versions: pinned`, so that its tasks continue with the newest code.';
  return new JournalMismatch(slug, problem, code);
}

/** The newest version with the label of a task. Without `next`, its tasks continue with the stable version, and count as neither. */
function latestOf(agent: Agent, label: AgentLabel | undefined): Agent {
  if (label !== 'next') return label ? { ...agent, label } : agent;
  const next = agent.labels?.next;
  return next?.definition ? { ...agent, definition: next.definition, version: next.version, label } : agent;
}
