import { type AgentDefinition, isJsonObject } from '@baton/a2a';

/** Stands for a text that is not shown. */
export const HIDDEN = '(hidden)';

/**
 * A definition without the texts in the headers and the environment of its settings: a text may be a credential that the author has
 * later moved into a secret. Names of secrets stay. The settings may be those of an earlier release, so no schema reads them.
 */
export function withoutHeaderTexts<T extends Pick<AgentDefinition, 'config'>>(definition: T): T {
  const { config } = definition;
  if (!isJsonObject(config)) return definition;
  const tools = isJsonObject(config.tools) ? config.tools : undefined;
  const mcp = Array.isArray(tools?.mcp)
    ? tools.mcp.map((server: unknown) =>
        isJsonObject(server) ? withHidden(withHidden(server, 'headers'), 'env') : server,
      )
    : undefined;
  const shown = { ...withHidden(config, 'headers'), ...(mcp && { tools: { ...tools, mcp } }) };
  return { ...definition, config: shown };
}

function withHidden(settings: Record<string, unknown>, name: string): Record<string, unknown> {
  const values = settings[name];
  if (!isJsonObject(values)) return settings;
  const entries = Object.entries(values).map(([key, value]) => [
    key,
    typeof value === 'string' ? HIDDEN : value,
  ]);
  return { ...settings, [name]: Object.fromEntries(entries) as unknown };
}
