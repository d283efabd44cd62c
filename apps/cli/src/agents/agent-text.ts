import { stringify } from 'yaml';
import type { ShownAgent } from './agents-client.js';

/** An agent as its file would have it. */
export function documentOf({ slug, enabled, definition }: ShownAgent): Record<string, unknown> {
  return { slug, ...(!enabled && { enabled }), ...definition };
}

/** The file of an agent, as YAML. */
export const agentText = (agent: ShownAgent): string => stringify(documentOf(agent), { lineWidth: 0 });
