import {
  type Agent,
  type AgentChoice,
  OPERATIONS,
  type OperationCall,
  type Profile,
  ProtocolError,
  isEnabled,
  soleAgent,
} from '@baton/a2a';
import { AgentDirectory } from '@baton/tasks';
import { Injectable } from '@nestjs/common';

/** Where an agent is looked for. */
export interface AgentScope {
  tenantId: string;
  profile: Profile;
  /** Slug of the agent the host name is bound to. */
  hostAgent?: string;
}

/** Finds the agent of a call in the caller's tenant. */
@Injectable()
export class AgentFinder {
  constructor(private readonly agents: AgentDirectory) {}

  /** Throws `agent-not-found`, or `task-not-found` where the task would have named the agent. */
  async find(choice: AgentChoice, scope: AgentScope, call: OperationCall): Promise<Agent> {
    const agent = await this.choose(choice, scope);
    const { needsLiveAgent } = OPERATIONS[call.operation];
    // The tasks of a deleted agent stay readable.
    if (agent.closed === 'deleted' && needsLiveAgent) {
      throw agentNotFound(choice.by === 'name' ? choice.name : agent.slug);
    }
    // A task that names a disabled agent stays readable, and can be canceled.
    const isReachable = isEnabled(agent) || (choice.by === 'task' && !needsLiveAgent);
    if (scope.profile.onlyEnabledAgents && !isReachable) throw agentNotFound(agent.slug);
    return agent;
  }

  private async choose(choice: AgentChoice, { tenantId, profile, hostAgent }: AgentScope): Promise<Agent> {
    switch (choice.by) {
      case 'name':
        return this.kept(tenantId, choice.name);
      case 'host':
        return hostAgent === undefined ? this.defaultAgent(tenantId) : this.kept(tenantId, hostAgent);
      case 'sole':
        return soleAgent(await this.agents.own(tenantId), await this.agents.defaultAgent(tenantId));
      case 'task': {
        const agent = await this.agents.ofTask(tenantId, profile.name, choice.taskId);
        if (!agent) throw ProtocolError.taskNotFound(choice.taskId);
        return agent;
      }
    }
  }

  /** The agent with that slug or id. */
  async named(tenantId: string, slugOrId: string): Promise<Agent> {
    const agent = await this.agents.find(tenantId, slugOrId);
    if (!agent) throw agentNotFound(slugOrId);
    return agent;
  }

  /** The same, or one that was deleted. */
  private async kept(tenantId: string, slugOrId: string): Promise<Agent> {
    const agent = await this.agents.findIncludingDeleted(tenantId, slugOrId);
    if (!agent) throw agentNotFound(slugOrId);
    return agent;
  }

  /** The agent that answers where none is named. */
  async defaultAgent(tenantId: string): Promise<Agent> {
    const agent = await this.agents.defaultAgent(tenantId);
    if (agent) return agent;
    throw new ProtocolError('agent-not-found', "the tenant's default agent does not exist any more");
  }
}

/** The same for an agent that does not exist and for another tenant's. */
function agentNotFound(slugOrId: string): ProtocolError {
  return new ProtocolError('agent-not-found', `Agent not found: ${slugOrId}`, {
    metadata: { agent: slugOrId },
  });
}
