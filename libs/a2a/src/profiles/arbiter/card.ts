import type { Agent } from '../../agent.js';
import { buildAgentCard } from '../../cards/build-card.js';
import { flattenCard } from '../../cards/flatten-card.js';

const CHAT = { id: 'chat', name: 'Chat', description: 'Answers messages of text.', tags: ['chat'] };

/** The card of an agent as Arbiter's clients read it: 0.3, text in, text and JSON out. */
export function encodeArbiterCard(agent: Agent, publicUrl: string): Record<string, unknown> {
  const url = `${publicUrl.replace(/\/+$/, '')}/v1/a2a/agents/${encodeURIComponent(agent.id)}`;
  const supportedInterfaces = [{ url, protocolBinding: 'JSONRPC', protocolVersion: '0.3', tenant: '' }];
  const card = flattenCard({ ...buildAgentCard(agent, publicUrl), supportedInterfaces });
  const skills = (card.skills as { id: string }[]).filter(({ id }) => id !== CHAT.id);
  return {
    ...card,
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain', 'application/json'],
    skills: [CHAT, ...skills],
  };
}
