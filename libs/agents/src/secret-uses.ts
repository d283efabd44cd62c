import { type AgentDefinition, type OAuthSettings, originOf, programOrigin } from '@baton/a2a';
import {
  type LlmConfig,
  llmConfigSchema,
  modelKey,
  type ModelFields,
  splitModel,
} from './runtimes/llm/llm-config.js';
import { type RemoteConfig, remoteConfigSchema, originsOf } from './runtimes/remote-a2a/remote-config.js';

/** A secret that an agent's settings name, and where it is sent. */
export interface SecretUse {
  /** Path of the setting. */
  field: string;
  secret: string;
  /** Origins and programs that receive the value. */
  destinations: string[];
  /** The agent also runs without it. */
  isOptional?: true;
}

/** All secrets that an agent would send, with every place that would receive them. The settings must be valid. */
export function secretUses({ runtime, config }: Pick<AgentDefinition, 'runtime' | 'config'>): SecretUse[] {
  if (runtime === 'llm') return usesOfLlm(llmConfigSchema.parse(config));
  if (runtime === 'remote-a2a') return usesOfRemote(remoteConfigSchema.parse(config));
  return [];
}

function usesOfLlm(config: LlmConfig): SecretUse[] {
  const keys = [
    usesOfModel(config, 'config'),
    ...config.fallback.map((model, i) => usesOfModel(model, `config.fallback[${i}]`)),
  ];
  const tools = config.tools.mcp.flatMap((server, i) => {
    const path = `config.tools.mcp[${i}]`;
    return 'command' in server
      ? named(`${path}.env`, server.env, [programOrigin(server.command, server.args)])
      : [
          ...named(`${path}.headers`, server.headers, [originOf(server.url)]),
          ...usesOfClient(`${path}.oauth`, server.oauth),
        ];
  });
  return [...keys, ...tools];
}

/** The key of a model. */
function usesOfModel(settings: ModelFields, path: string): SecretUse {
  const { name, destination, field } = modelKey(settings);
  // A server with the API of OpenAI may need no key.
  const isOptional =
    settings.key === undefined && splitModel(settings.model).provider === 'openai-compatible';
  return {
    field: `${path}.${field}`,
    secret: name,
    destinations: [destination],
    ...(isOptional && { isOptional }),
  };
}

/** The password of a client. The authorization server may have its endpoints elsewhere: the sign-in checks that again. */
function usesOfClient(path: string, settings: OAuthSettings | undefined): SecretUse[] {
  if (settings?.clientSecret === undefined || settings.issuer === undefined) return [];
  return [{ field: `${path}.clientSecret`, secret: settings.clientSecret, destinations: [] }];
}

const usesOfRemote = (config: RemoteConfig): SecretUse[] => [
  ...named('config.headers', config.headers, originsOf(config)),
  ...usesOfClient('config.oauth', config.oauth),
];

/** The values that name a secret. */
function named(
  path: string,
  values: Readonly<Record<string, string | { secret: string }>>,
  destinations: string[],
): SecretUse[] {
  return Object.entries(values).flatMap(([name, value]) =>
    typeof value === 'string' ? [] : [{ field: `${path}.${name}`, secret: value.secret, destinations }],
  );
}
