import { isAllowedName, ProtocolError, type Reacher } from '@baton/a2a';
import type { AgentDirectory } from '@baton/tasks';

/**
 * The id of the agent that a list is asked for, which may be deleted: its tasks are still there.
 * @throws ProtocolError `agent-not-found`, also if the agent does not exist for the caller
 */
export async function idOfAgent(
  agents: Pick<AgentDirectory, 'findIncludingDeleted'>,
  { tenantId, agents: allowed }: Reacher & { tenantId: string },
  name: string,
): Promise<string> {
  const agent = isAllowedName(allowed, name) ? await agents.findIncludingDeleted(tenantId, name) : undefined;
  if (agent) return agent.id;
  throw new ProtocolError('agent-not-found', `Agent not found: ${name}`, { metadata: { agent: name } });
}
