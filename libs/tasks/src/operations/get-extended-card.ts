import { type AgentCard, type CallContext, extendAgent, ProtocolError, requireScope } from '@baton/a2a';

/** What the use case reads. */
type CardCall = Pick<CallContext, 'agent' | 'scopes' | 'rules' | 'buildCard'>;

/**
 * The card of an agent with what only some callers may read (A2A 1.0 §3.1.11). Throws `forbidden` where the agent asks for
 * scopes that the caller lacks.
 */
export async function getExtendedAgentCard({
  agent,
  scopes,
  rules,
  buildCard,
}: CardCall): Promise<AgentCard> {
  const extended = extendAgent(agent);
  if (!extended) {
    throw new ProtocolError(rules.extendedCard, 'This agent has no extended card: read its public card');
  }
  const enough = agent.definition.extended?.scopes;
  if (enough) requireScope(enough, scopes);
  if (!buildCard) throw new Error('the caller of this operation must say where the agent is reached');
  return buildCard(extended);
}
