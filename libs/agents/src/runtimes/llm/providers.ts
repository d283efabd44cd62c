import { type LanguageModel, type streamText, wrapLanguageModel } from 'ai';
import { MODEL_PROVIDER_URLS } from '@baton/a2a';
import { withoutEndSlashes } from '@baton/outbound';
import type { TurnSecrets } from '../../agent-runtime.js';
import { AgentFailure } from './agent-failure.js';
import { type LlmConfig, type Provider, modelKey, splitModel } from './llm-config.js';

// The SDK prints warnings about unsupported settings. They are for an agent's author, not for a worker's log.
globalThis.AI_SDK_LOG_WARNINGS = false;

type Fetch = typeof globalThis.fetch;
type Model = Exclude<LanguageModel, string>;
type ModelV3 = Extract<Model, { specificationVersion: 'v3' }>;
type ProviderOptions = NonNullable<Parameters<typeof streamText>[0]['providerOptions']>;

/** A model, with its names for errors and metrics. */
export interface OpenModel {
  model: Model;
  provider: Provider;
  name: string;
  /** The key, to remove it from errors, and the name of its secret. */
  key: string | undefined;
  keyName: string;
  options: ProviderOptions;
}

/** Token budget for reasoning, for providers that need a number. */
const THINKING = { low: 2_048, medium: 8_192, high: 24_576 } as const;

/**
 * Opens the model of an agent with the tenant's key.
 * @param fetch the outbound guard's fetch
 * @throws AgentFailure if the tenant has no such key
 */
export async function openModel(config: LlmConfig, secrets: TurnSecrets, fetch: Fetch): Promise<OpenModel> {
  const { provider, name } = splitModel(config.model);
  const { name: keyName, destination } = modelKey(config);
  const key = await secrets.get(keyName, [destination]).catch(rethrowPlain);
  const isOptional = provider === 'openai-compatible' && config.key === undefined;
  if (key === undefined && !isOptional) {
    throw new AgentFailure(
      `There is no key for ${provider}: set the secret "${keyName}" (npx baton secrets set ${keyName} --tenant …).`,
    );
  }
  const plain = await create(config, provider, name, key, fetch);
  const model = config.output ? jsonOnly(plain, config.output.schema) : plain;
  return { model, provider, name, key, keyName, options: optionsOf(config, provider) };
}

/** Shows the reason why a secret can not be read to the tenant. */
function rethrowPlain(error: unknown): never {
  throw error instanceof Error && error.name === 'SecretError' ? new AgentFailure(error.message) : error;
}

/** Loads a provider's package when a run needs it: most processes need one of them, or none. */
async function create(
  config: LlmConfig,
  provider: Provider,
  name: string,
  apiKey = '',
  fetch: Fetch,
): Promise<ModelV3> {
  // Given always, because the SDK would read the worker's environment first.
  const baseURL = config.baseUrl && withoutEndSlashes(config.baseUrl);
  switch (provider) {
    case 'openai': {
      const { createOpenAI } = await import('@ai-sdk/openai');
      const openai = createOpenAI({ baseURL: baseURL ?? MODEL_PROVIDER_URLS.openai, apiKey, fetch });
      return config.api === 'chat' ? openai.chat(name) : openai.responses(name);
    }
    case 'anthropic': {
      const { createAnthropic } = await import('@ai-sdk/anthropic');
      return createAnthropic({ baseURL: baseURL ?? MODEL_PROVIDER_URLS.anthropic, apiKey, fetch })(name);
    }
    case 'google': {
      const { createGoogleGenerativeAI } = await import('@ai-sdk/google');
      return createGoogleGenerativeAI({ baseURL: baseURL ?? MODEL_PROVIDER_URLS.google, apiKey, fetch })(
        name,
      );
    }
    case 'openai-compatible': {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
      const settings = { name: 'compatible', baseURL: baseURL ?? '', fetch };
      const reports = { includeUsage: true, supportsStructuredOutputs: true };
      return createOpenAICompatible({ ...settings, ...reports, ...(apiKey && { apiKey }) })(name);
    }
  }
}

/** Requests JSON of a schema. The SDK's own way would parse the whole text again for each piece. */
function jsonOnly(model: ModelV3, schema: Record<string, unknown>): ModelV3 {
  return wrapLanguageModel({
    model,
    middleware: {
      specificationVersion: 'v3',
      transformParams: ({ params }) =>
        Promise.resolve({ ...params, responseFormat: { type: 'json', name: 'answer', schema } }),
    },
  });
}

function optionsOf({ reasoning }: LlmConfig, provider: Provider): ProviderOptions {
  switch (provider) {
    case 'openai':
      // The provider stores nothing, and schemas need not be "strict" in OpenAI's sense.
      return {
        openai: {
          store: false,
          strictJsonSchema: false,
          ...(reasoning && { reasoningEffort: reasoning, reasoningSummary: 'auto' }),
        },
      };
    case 'anthropic':
      return reasoning
        ? { anthropic: { thinking: { type: 'enabled', budgetTokens: THINKING[reasoning] } } }
        : {};
    case 'google':
      return reasoning
        ? { google: { thinkingConfig: { includeThoughts: true, thinkingBudget: THINKING[reasoning] } } }
        : {};
    case 'openai-compatible':
      return reasoning ? { compatible: { reasoningEffort: reasoning } } : {};
  }
}
