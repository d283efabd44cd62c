import type { Agent } from './agent.js';

/**
 * The agent as a new task begins with it: its stable version, or `next`. It is the same at each try for the same id. The last digits
 * of an id are random, in each version of UUIDs.
 */
export function agentOfNewTask(agent: Agent, taskId: string): Agent {
  const next = agent.labels?.next;
  if (!next?.definition) return agent;
  if (Number.parseInt(taskId.slice(-8), 16) % 100 >= next.share) return { ...agent, label: 'stable' };
  return { ...agent, definition: next.definition, version: next.version, label: 'next' };
}
