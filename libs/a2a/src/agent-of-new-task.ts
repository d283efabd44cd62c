import type { Agent, AgentLabel } from './agent.js';

/**
 * The version of an agent for a new task: its stable version, or `next`. It is the same at each try for the same id. The last
 * digits of an id are random, in each version of UUIDs.
 * @param chosen the label that the caller has asked for
 */
export function agentOfNewTask(agent: Agent, taskId: string, chosen?: AgentLabel): Agent {
  const next = agent.labels?.next;
  if (!next?.definition) return agent;
  const drawn = Number.parseInt(taskId.slice(-8), 16) % 100 >= next.share ? 'stable' : 'next';
  if ((chosen ?? drawn) === 'stable') return { ...agent, label: 'stable' };
  return { ...agent, definition: next.definition, version: next.version, label: 'next' };
}
