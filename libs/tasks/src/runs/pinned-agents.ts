import type { Agent, AgentLabel } from '@baton/a2a';
import { JournalMismatch, readAgent, unpackAgent } from '@baton/agents';
import { Environment } from '@baton/config';
import {
  AgentStore,
  type ClaimedRun,
  DatabaseUnavailableError,
  isTransient,
  RunStore,
} from '@baton/database';
import { Logger, messageOf } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { dirname } from 'node:path';
import { undoneBy } from '../forks/fork-metadata.js';

/** Finds the version that a task runs: of agents that pin their tasks (`versions: pinned`), and of agents with labels. */
@Injectable()
export class PinnedAgents {
  constructor(
    private readonly runs: RunStore,
    private readonly agents: AgentStore,
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {}

  /**
   * The agent as a run must execute it.
   * @param agent the newest version. It says whether its tasks are pinned
   * @param code hash of the code that is there now, of an installed agent
   * @returns `agent`, if the task begins now, is not pinned, or its version is no longer there
   * @throws JournalMismatch if its code is kept, but this worker cannot use it, as on a full disk: other code would be wrong
   */
  async versionFor(run: ClaimedRun, agent: Agent, code: string | undefined): Promise<Agent> {
    const isPinned = agent.definition.versions === 'pinned';
    if ((!isPinned && !agent.labels) || agent.origin === 'builtin') return agent;
    // Steps are undone by the code that has made them.
    const undone = undoneBy(run.snapshot.task);
    // With labels it was decided when the task was accepted.
    if (!undone && !agent.labels && run.attempt === 1 && run.runId === run.taskId) return agent;
    const begun = await this.runs.begunWith(run.tenantId, undone ?? run.taskId);
    if (!begun) return agent;
    if (!isPinned) return latestOf(agent, begun.label);
    const pinned =
      agent.origin === 'installed'
        ? await this.withCode(agent, begun.code, code)
        : await this.ofCatalog(run.tenantId, agent, begun.version);
    if (pinned) return begun.label ? { ...pinned, label: begun.label } : pinned;
    this.logger.warn('the version with which a task began is no longer there: it goes on with the newest', {
      tenantId: run.tenantId,
      taskId: run.taskId,
      agent: agent.slug,
      version: begun.version ?? begun.code,
    });
    return agent;
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

  /** Its `agent.yaml` is that of the kept code, too. Undefined: the code is not kept. */
  private async withCode(
    agent: Agent,
    begun: string | undefined,
    now: string | undefined,
  ): Promise<Agent | undefined> {
    const { slug } = agent;
    const { agentsDir } = this.environment;
    if (begun === undefined || begun === now || !agentsDir) return agent;
    try {
      const archive = (): Promise<Buffer | undefined> => this.agents.archive(slug, begun);
      const folder = await unpackAgent(archive, { slug, code: begun, directory: agentsDir });
      const read = folder === undefined ? undefined : await readAgent(dirname(folder), slug);
      if (folder === undefined || !read || Array.isArray(read)) return undefined;
      return { ...agent, definition: read.definition, code: begun, folder };
    } catch (error) {
      // It is there again when Postgres is: other code would be wrong.
      if (isTransient(error) || error instanceof DatabaseUnavailableError) throw error;
      this.logger.error('the kept code of an agent cannot be used', {
        err: error,
        agent: slug,
        code: begun,
      });
      // With the hash of the kept code the run is tried again: soon for the first time, then every minute, by any worker.
      const problem = `The code with which the task began (${begun}) is kept, but a worker could not unpack it: ${messageOf(error)}`;
      throw new JournalMismatch(slug, problem, begun);
    }
  }
}

/** The newest version with the label of a task. Without `next`, its tasks go on with the stable version, and count as neither. */
function latestOf(agent: Agent, label: AgentLabel | undefined): Agent {
  if (label !== 'next') return label ? { ...agent, label } : agent;
  const next = agent.labels?.next;
  return next?.definition ? { ...agent, definition: next.definition, version: next.version, label } : agent;
}
