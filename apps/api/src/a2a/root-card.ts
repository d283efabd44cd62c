import { type Agent, type AgentCard, buildAgentCard } from '@baton/a2a';

/** What is spoken at the root, the preferred version first. */
const VERSIONS = ['1.0', '0.3'];

/**
 * The card of an agent at the root of the host it is bound to, which is its only address there.
 * @param needsToken false for callers that are let in without one
 */
export function buildRootCard(agent: Agent, origin: string, needsToken: boolean): AgentCard {
  const card = buildAgentCard(agent, origin);
  const supportedInterfaces = VERSIONS.map((protocolVersion) => ({
    url: `${origin}/`,
    protocolBinding: 'JSONRPC',
    protocolVersion,
    tenant: '',
  }));
  const securityRequirements = needsToken ? card.securityRequirements : [];
  return { ...card, supportedInterfaces, securityRequirements };
}
