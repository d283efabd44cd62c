import {
  type Agent,
  type AgentChoice,
  OPERATIONS,
  type OperationCall,
  type Profile,
  ProtocolError,
  type Reacher,
  type Scope,
  isAllowed,
  isAllowedName,
  isEnabled,
  soleAgent,
} from '@baton/a2a';
import { AgentDirectory } from '@baton/tasks';
import { Injectable } from '@nestjs/common';
import { distance } from 'fastest-levenshtein';

/** The caller that asks for an agent, and the profile and host of its call. */
export interface AgentScope extends Reacher {
  tenantId: string;
  profile: Profile;
  /** Slug of the agent the host name is bound to. */
  hostAgent?: string;
}

/** The caller that reads an agent. */
type AgentViewer = Pick<AgentScope, 'tenantId' | 'agents'> & Partial<Pick<AgentScope, 'scopes' | 'profile'>>;

@Injectable()
export class AgentFinder {
  constructor(private readonly agents: AgentDirectory) {}

  /** Throws `agent-not-found`, or `task-not-found` where the task would have named the agent. */
  async find(choice: AgentChoice, scope: AgentScope, call: OperationCall): Promise<Agent> {
    const agent = await this.choose(choice, scope);
    const { needsLiveAgent } = OPERATIONS[call.operation];
    // The tasks of a deleted agent stay readable.
    const isGone = agent.status === 'deleted' && needsLiveAgent;
    if (isGone || !isAllowed(scope.agents, agent)) {
      throw choice.by === 'name' ? await this.nameNotFound(scope, choice.name) : agentNotFound(agent.slug);
    }
    // A task that names a disabled agent stays readable, and can be canceled.
    const isReachable = isEnabled(agent) || (choice.by === 'task' && !needsLiveAgent);
    if (scope.profile.onlyEnabledAgents && !isReachable) throw agentNotFound(agent.slug);
    return agent;
  }

  /** Like `find`, but reads the agent again, because the cache of this process may be stale. */
  async findAnew(choice: AgentChoice, scope: AgentScope, call: OperationCall): Promise<Agent> {
    this.agents.forget(scope.tenantId);
    return this.find(choice, scope, call);
  }

  private async choose(choice: AgentChoice, scope: AgentScope): Promise<Agent> {
    const { tenantId, profile, hostAgent } = scope;
    switch (choice.by) {
      case 'name': {
        const named = await this.agents.findIncludingDeleted(tenantId, choice.name);
        if (!named) throw await this.nameNotFound(scope, choice.name);
        return named;
      }
      case 'host':
        return hostAgent === undefined
          ? this.defaultAgent(scope)
          : this.includingDeleted(tenantId, hostAgent);
      case 'sole': {
        const own = await this.agents.own(tenantId);
        const known = own.filter((agent) => isAllowed(scope.agents, agent));
        const sole = soleAgent(known, await this.agents.defaultAgent(tenantId));
        return this.includingDeleted(tenantId, sole.slug);
      }
      case 'task': {
        const agent = await this.agents.ofTask(scope, profile.name, choice.taskId);
        if (!agent) throw ProtocolError.taskNotFound(choice.taskId);
        return agent;
      }
    }
  }

  /** The agent with that slug or id, if it exists for the caller. */
  async named(viewer: AgentViewer, slugOrId: string): Promise<Agent> {
    const agent = await this.agents.find(viewer.tenantId, slugOrId);
    if (!agent || !isAllowed(viewer.agents, agent)) throw await this.nameNotFound(viewer, slugOrId);
    return agent;
  }

  /**
   * The id of the agent that a list is asked for, which may be deleted: its tasks are still there.
   * @throws ProtocolError `agent-not-found`, also if the agent does not exist for the caller
   */
  async idOf({ tenantId, agents }: AgentViewer, slugOrId: string | undefined): Promise<string | undefined> {
    if (slugOrId === undefined) return undefined;
    const agent = isAllowedName(agents, slugOrId)
      ? await this.agents.findIncludingDeleted(tenantId, slugOrId)
      : undefined;
    if (!agent) throw agentNotFound(slugOrId);
    return agent.id;
  }

  /**
   * The error for a name without an agent. An unknown agent and one that is hidden from the caller get the same error, after the same reads.
   */
  private async nameNotFound(viewer: AgentViewer, name: string): Promise<ProtocolError> {
    const { tenantId, agents, scopes = [], profile } = viewer;
    // Where some agents are hidden, their names are as well.
    const isSuggested = scopes.some((scope) => NAMING_SCOPES.has(scope)) && !profile?.onlyEnabledAgents;
    if (!isSuggested || name.length > MAX_SLUG_LENGTH) return agentNotFound(name);
    const slugs = await this.agents.slugs(tenantId);
    return agentNotFound(
      name,
      nearTo(
        name,
        slugs.filter((slug) => isAllowed(agents, { slug })),
      ),
    );
  }

  /** The agent of that slug or id, also one that was deleted. */
  private async includingDeleted(tenantId: string, slugOrId: string): Promise<Agent> {
    const agent = await this.agents.findIncludingDeleted(tenantId, slugOrId);
    if (!agent) throw agentNotFound(slugOrId);
    return agent;
  }

  /** The agent for calls that name none. */
  async defaultAgent({ tenantId, agents }: AgentViewer): Promise<Agent> {
    const agent = await this.agents.defaultAgent(tenantId);
    if (agent && isAllowed(agents, agent)) return agent;
    if (agent) throw agentNotFound(agent.slug);
    throw new ProtocolError('agent-not-found', "the tenant's default agent no longer exists");
  }
}

/**
 * The error of a missing agent. It is the same for an agent of another tenant.
 * @param near slugs that the caller may have meant
 */
function agentNotFound(slugOrId: string, near: readonly string[] = []): ProtocolError {
  const hint = near.length > 0 ? `; did you mean ${near.join(' or ')}?` : '';
  return new ProtocolError('agent-not-found', `Agent not found: ${slugOrId}${hint}`, {
    metadata: { agent: slugOrId },
  });
}

/** A token with one of these scopes may list the agents, or try their names. */
const NAMING_SCOPES: ReadonlySet<Scope> = new Set(['agents:call', 'agents:read', 'admin']);

/** No slug is longer. */
const MAX_SLUG_LENGTH = 63;
/** Slugs that an error suggests. */
const MAX_NEAR = 3;

/** The slugs in which a third of the name or less is different, the nearest first. */
function nearTo(name: string, slugs: readonly string[]): string[] {
  const wanted = name.toLowerCase();
  const most = Math.max(1, Math.floor(name.length / 3));
  return slugs
    .map((slug) => ({ slug, typos: distance(wanted, slug) }))
    .filter(({ typos }) => typos <= most)
    .sort((a, b) => a.typos - b.typos)
    .slice(0, MAX_NEAR)
    .map(({ slug }) => slug);
}
