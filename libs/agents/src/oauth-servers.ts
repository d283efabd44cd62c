import type { AgentDefinition, OAuthSettings } from '@baton/a2a';
import { llmConfigSchema } from './runtimes/llm/llm-config.js';

/** A server at which an agent signs in. */
export interface OAuthServer {
  /** Its name in the settings of the agent. */
  server: string;
  url: string;
  settings: OAuthSettings;
}

/** The servers at which an agent signs in. The settings must be valid. */
export function oauthServers({
  runtime,
  config,
}: Pick<AgentDefinition, 'runtime' | 'config'>): OAuthServer[] {
  if (runtime !== 'llm') return [];
  return llmConfigSchema
    .parse(config)
    .tools.mcp.flatMap((server) =>
      'url' in server && server.oauth
        ? [{ server: server.name, url: server.url, settings: server.oauth }]
        : [],
    );
}
