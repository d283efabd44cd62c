import { type LanguageModel, type streamText, wrapLanguageModel } from 'ai';
import { withoutEndSlashes } from '../../outbound/outbound-url.js';
import type { SecretReader } from '../../ports.js';
import { AgentFailure } from './agent-failure.js';
import { type LlmConfig, type Provider, splitModel } from './config.js';

// The SDK prints what a provider does not support; that is for the author of an agent, not for a worker's log.
globalThis.AI_SDK_LOG_WARNINGS = false;

type Fetch = typeof globalThis.fetch;
type Model = Exclude<LanguageModel, string>;
type ModelV3 = Extract<Model, { specificationVersion: 'v3' }>;
type ProviderOptions = NonNullable<Parameters<typeof streamText>[0]['providerOptions']>;

/** A model to call, with what is said of it in errors and metrics. */
export interface OpenModel {
  model: Model;
  provider: Provider;
  name: string;
  /** The key itself, so that it can be kept out of errors; and where it is from. */
  key: string | undefined;
  keyName: string;
  options: ProviderOptions;
}

// Said here and not left to the SDK, which would look into the environment of the worker first.
const USUAL_URL: Record<Exclude<Provider, 'openai-compatible'>, string> = {
  openai: 'https://api.openai.com/v1',
  anthropic: 'https://api.anthropic.com/v1',
  google: 'https://generativelanguage.googleapis.com/v1beta',
};

/** Tokens that a model which must be told may think for. */
const THINKING = { low: 2_048, medium: 8_192, high: 24_576 } as const;

/**
 * The model that an agent names, with the tenant's key.
 * @param fetch the way out
 * @throws AgentFailure if the tenant has no such key
 */
export async function openModel(
  config: LlmConfig,
  tenantId: string,
  secrets: SecretReader,
  fetch: Fetch,
): Promise<OpenModel> {
  const { provider, name } = splitModel(config.model);
  const keyName = config.key ?? provider;
  const key = (await secrets.get(tenantId, keyName).catch(rethrowPlain))?.trim();
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

/** A secret that is there and can't be read says why, for the tenant or its operator. */
function rethrowPlain(error: unknown): never {
  throw error instanceof Error && error.name === 'SecretError' ? new AgentFailure(error.message) : error;
}

/** A provider's package is loaded by the first run that needs it: most processes need one of them, or none. */
async function create(
  config: LlmConfig,
  provider: Provider,
  name: string,
  apiKey = '',
  fetch: Fetch,
): Promise<ModelV3> {
  const baseURL = config.baseUrl && withoutEndSlashes(config.baseUrl);
  switch (provider) {
    case 'openai': {
      const { createOpenAI } = await import('@ai-sdk/openai');
      const openai = createOpenAI({ baseURL: baseURL ?? USUAL_URL.openai, apiKey, fetch });
      return config.api === 'chat' ? openai.chat(name) : openai.responses(name);
    }
    case 'anthropic': {
      const { createAnthropic } = await import('@ai-sdk/anthropic');
      return createAnthropic({ baseURL: baseURL ?? USUAL_URL.anthropic, apiKey, fetch })(name);
    }
    case 'google': {
      const { createGoogleGenerativeAI } = await import('@ai-sdk/google');
      return createGoogleGenerativeAI({ baseURL: baseURL ?? USUAL_URL.google, apiKey, fetch })(name);
    }
    case 'openai-compatible': {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
      const settings = { name: 'compatible', baseURL: baseURL ?? '', fetch };
      const reports = { includeUsage: true, supportsStructuredOutputs: true };
      return createOpenAICompatible({ ...settings, ...reports, ...(apiKey && { apiKey }) })(name);
    }
  }
}

/** Asks for JSON of that schema. The SDK's own way would parse all of the text again with every word of it. */
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
      // Nothing is left with the provider, and schemas need not be of the kind that OpenAI calls strict.
      return {
        openai: {
          ...{ store: false, strictJsonSchema: false },
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
