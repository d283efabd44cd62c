import { type AgentDefinition, modelProvider } from '@baton/a2a';
import { type LlmConfig, llmConfigSchema, splitModel } from './runtimes/llm/llm-config.js';
import { type RemoteConfig, remoteConfigSchema } from './runtimes/remote-a2a/remote-config.js';

/** A URL that an agent calls. */
export interface CalledUrl {
  /** Path of the setting that decides it. */
  field: string;
  url: string;
}

/** All URLs that the settings of an agent name. Messages may name others: files at URLs. The settings must be valid. */
export function calledUrls({ runtime, config }: Pick<AgentDefinition, 'runtime' | 'config'>): CalledUrl[] {
  if (runtime === 'llm') return urlsOfLlm(llmConfigSchema.parse(config));
  if (runtime === 'remote-a2a') return urlsOfRemote(remoteConfigSchema.parse(config));
  return [];
}

function urlsOfLlm({ model, baseUrl, fallback, tools }: LlmConfig): CalledUrl[] {
  const models = [
    { model, baseUrl, path: 'config' },
    ...fallback.map((each, i) => ({ ...each, path: `config.fallback[${i}]` })),
  ];
  const providers = models.flatMap((each) => {
    const url = each.baseUrl ?? modelProvider(splitModel(each.model).provider).url;
    const field = `${each.path}.${each.baseUrl === undefined ? 'model' : 'baseUrl'}`;
    return url === null ? [] : [{ field, url }];
  });
  const servers = tools.mcp.flatMap((server, i) =>
    'url' in server ? [{ field: `config.tools.mcp[${i}].url`, url: server.url }] : [],
  );
  return [...providers, ...servers];
}

const urlsOfRemote = ({ card, origins }: RemoteConfig): CalledUrl[] => [
  { field: 'config.card', url: card },
  ...origins.map((url, i) => ({ field: `config.origins[${i}]`, url })),
];
