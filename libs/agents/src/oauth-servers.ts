import type { AgentDefinition, OAuthSettings } from '@baton/a2a';
import { llmConfigSchema } from './runtimes/llm/llm-config.js';
import { remoteConfigSchema } from './runtimes/remote-a2a/remote-config.js';

/** The name of a remote agent among the servers of its own settings: there is only one. */
const REMOTE_AGENT = 'agent';

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
  if (runtime === 'remote-a2a') {
    const { card, oauth } = remoteConfigSchema.parse(config);
    return oauth ? [{ server: REMOTE_AGENT, url: card, settings: oauth }] : [];
  }
  if (runtime !== 'llm') return [];
  return llmConfigSchema
    .parse(config)
    .tools.mcp.flatMap((server) =>
      'url' in server && server.oauth
        ? [{ server: server.name, url: server.url, settings: server.oauth }]
        : [],
    );
}
