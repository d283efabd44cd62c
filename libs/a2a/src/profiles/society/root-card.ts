import type { Agent } from '../../agent.js';
import { buildAgentCard } from '../../cards/build-card.js';
import { flattenCard } from '../../cards/flatten-card.js';

/**
 * The card of the agent at the root of a host: the flat shape, in which clients of Society and of 0.2 and 0.3
 * find what they look for, and the root as its only address.
 */
export const encodeRootCard = (agent: Agent, origin: string): Record<string, unknown> => {
  const url = `${origin.replace(/\/+$/, '')}/`;
  const supportedInterfaces = [{ url, protocolBinding: 'JSONRPC', protocolVersion: '0.3', tenant: '' }];
  return flattenCard({ ...buildAgentCard(agent, origin), supportedInterfaces });
};
