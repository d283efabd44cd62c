import { agentOrigin } from '@baton/a2a';
import { COMMAND_LINE } from '@baton/config';
import type { Turn } from '../../agent-runtime.js';
import { turnSettings } from './executor-config.js';
import type { TurnPorts } from './turn-stream.js';

/**
 * The functions of the worker that a turn may call. Each call reads the secret again, so that a turn uses a rotated one. Its tenant
 * decides which agents may have it: it must list `agent:<slug>` among its origins.
 */
export function portsOf({ agent: { slug, definition }, secrets, console }: Turn): TurnPorts {
  const { secrets: named = [] } = turnSettings(definition);
  const setting = definition.runtime === 'llm' ? 'config.functions.secrets' : 'config.secrets';
  return {
    console,
    secret: async (name) => {
      if (!named.includes(name)) {
        throw new SecretRefusal(
          `the agent "${slug}" may not read the secret "${name}": ${setting} of its agent.yaml does not name it`,
        );
      }
      const value = await secrets.get(name, [agentOrigin(slug)]);
      if (value !== undefined) return value;
      throw new SecretRefusal(
        `the tenant has no secret "${name}": store it with ${COMMAND_LINE} secrets set ${name} --origin ${agentOrigin(slug)}`,
      );
    },
  };
}

class SecretRefusal extends Error {
  override readonly name = 'SecretRefusal';
}
