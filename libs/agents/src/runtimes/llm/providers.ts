import { type LanguageModel, type streamText, wrapLanguageModel } from 'ai';
import { type JsonObject, MODEL_PROVIDERS, type ModelProviderName, modelProvider } from '@baton/a2a';
import { COMMAND_LINE } from '@baton/config';
import { withoutEndSlashes, type Fetch } from '@baton/outbound';
import type { TurnSecrets } from '../../agent-runtime.js';
import type { Redactor } from '../../outbound/redactor.js';
import { AgentFailure } from './agent-failure.js';
import { ChatMemory, restoreReasoning } from './chat-memory.js';
import { apiOf, type LlmConfig, modelKey, splitModel } from './llm-config.js';
import { BUDGETS, EFFORTS, type Effort, featuresOf, reasoningBudget } from './model-features.js';
import { withCacheMarks } from './prompt-cache.js';
import { ownOptions } from './provider-options.js';
import type { ModelV3, SentParams } from './sent-params.js';
import { objectsOf } from './wire/json.js';
import { providerFetch } from './wire/provider-fetch.js';

// The SDK prints its warnings about settings. Baton logs them itself: see OpenModel.ignored.
globalThis.AI_SDK_LOG_WARNINGS = false;

type Model = Exclude<LanguageModel, string>;
type Middleware = Exclude<Parameters<typeof wrapLanguageModel>[0]['middleware'], readonly unknown[]>;
type StreamResult = Awaited<ReturnType<ModelV3['doStream']>>;
type StreamPart = StreamResult['stream'] extends ReadableStream<infer Part> ? Part : never;
type ModelWarning = Extract<StreamPart, { type: 'stream-start' }>['warnings'][number];
type ProviderOptions = NonNullable<Parameters<typeof streamText>[0]['providerOptions']>;

/** A model, with its names for errors and metrics. */
export interface OpenModel {
  model: Model;
  provider: ModelProviderName;
  name: string;
  /** The key, to remove it from errors, and the name of its secret. */
  key: string | undefined;
  keyName: string;
  /** Removes all secrets of the turn. */
  redactor: Redactor;
  /** Settings that the SDK does not pass on, in plain words. Filled with the first call. */
  ignored: Set<string>;
  options: ProviderOptions;
}

/**
 * Opens the model of an agent with the tenant's key.
 * @param fetch the outbound guard's fetch
 * @param onRequest called with each request
 * @throws AgentFailure if the tenant has no such key
 */
export async function openModel(
  config: LlmConfig,
  secrets: TurnSecrets,
  fetch: Fetch,
  onRequest?: (params: SentParams) => void,
): Promise<OpenModel> {
  const { provider, name } = splitModel(config.model);
  const { name: keyName, destination } = modelKey(config);
  const key = await secrets.get(keyName, [destination]).catch(rethrowPlain);
  const isOptional = !modelProvider(provider).isKeyNeeded && config.key === undefined;
  if (key === undefined && !isOptional) {
    throw new AgentFailure(
      `There is no key for ${provider}: set the secret "${keyName}" on the page Secrets of the console, or with ${COMMAND_LINE} secrets set ${keyName} < file.`,
    );
  }
  const ignored = new Set<string>();
  const plain = await create(config, provider, name, key, providerFetch(fetch, apiOf(config)));
  const model = wrapLanguageModel({
    model: plain,
    middleware: [settingsOf(config, provider, name, ignored), notes(ignored, onRequest)],
  });
  const { redactor } = secrets;
  return {
    model,
    provider,
    name,
    key,
    keyName,
    redactor,
    ignored,
    options: withOwn(config, provider, optionsOf(config, provider, name)),
  };
}

/** Shows the reason why a secret cannot be read to the tenant. */
function rethrowPlain(error: unknown): never {
  throw error instanceof Error && error.name === 'SecretError' ? new AgentFailure(error.message) : error;
}

/** Loads a provider's package when a run needs it: most processes need one of them, or none. */
async function create(
  config: LlmConfig,
  provider: ModelProviderName,
  name: string,
  apiKey = '',
  fetch: Fetch,
): Promise<ModelV3> {
  // Given always, because the SDK would read the worker's environment first.
  const baseURL = config.baseUrl && withoutEndSlashes(config.baseUrl);
  switch (provider) {
    case 'openai': {
      if (config.api === 'chat')
        return chatModel(name, baseURL ?? MODEL_PROVIDERS.openai.url, apiKey, fetch, openAiBody);
      const { createOpenAI } = await import('@ai-sdk/openai');
      return createOpenAI({ baseURL: baseURL ?? MODEL_PROVIDERS.openai.url, apiKey, fetch }).responses(name);
    }
    case 'anthropic': {
      const { createAnthropic } = await import('@ai-sdk/anthropic');
      return createAnthropic({ baseURL: baseURL ?? MODEL_PROVIDERS.anthropic.url, apiKey, fetch })(name);
    }
    case 'google': {
      const { createGoogleGenerativeAI } = await import('@ai-sdk/google');
      return createGoogleGenerativeAI({ baseURL: baseURL ?? MODEL_PROVIDERS.google.url, apiKey, fetch })(
        name,
      );
    }
    case 'openai-compatible':
      return chatModel(name, baseURL ?? '', apiKey, fetch, (body) => body);
  }
}

/**
 * A model behind chat completions. For OpenAI too: the SDK's own model for it drops reasoning and signatures, which
 * other servers need back.
 * @param change differences of the server's requests
 */
async function chatModel(
  name: string,
  baseURL: string,
  apiKey: string,
  fetch: Fetch,
  change: (body: JsonObject, baseURL: string) => JsonObject,
): Promise<ModelV3> {
  const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible');
  return createOpenAICompatible({
    // Under this name the SDK keeps the signatures of Gemini, and under no other name it sends them back.
    name: CHAT,
    baseURL,
    fetch,
    includeUsage: true,
    supportsStructuredOutputs: true,
    ...(apiKey && { apiKey }),
    metadataExtractor: {
      extractMetadata: () => Promise.resolve(undefined),
      createStreamExtractor: () => new ChatMemory(),
    },
    transformRequestBody: (body) => change(restoreReasoning(body), baseURL),
  })(name);
}

/** Name of the SDK's options of chat completions. */
const CHAT = 'google';

/** Differences of requests to OpenAI's own reasoning models from those to compatible servers. */
function openAiBody(body: JsonObject, baseURL: string): JsonObject {
  const { max_tokens, messages, ...rest } = body;
  // Others may refuse it.
  const stored =
    new URL(baseURL).origin === new URL(MODEL_PROVIDERS.openai.url).origin ? { store: false } : {};
  if (featuresOf('openai', String(body.model)).sampling) return { ...body, ...stored };
  const asDeveloper = objectsOf(messages).map((message) =>
    message.role === 'system' ? { ...message, role: 'developer' } : message,
  );
  return { ...rest, ...stored, messages: asDeveloper, max_completion_tokens: max_tokens };
}

/**
 * Completes each request with the settings that depend on its maximum of tokens, and with the schema of the answer. Leaves out
 * settings that the model would refuse: agents from before the rule have them.
 */
function settingsOf(
  config: LlmConfig,
  provider: ModelProviderName,
  name: string,
  ignored: Set<string>,
): Middleware {
  const { output, reasoning, promptCache } = config;
  const { sampling, reasoning: form } = featuresOf(provider, name);
  return {
    specificationVersion: 'v3',
    transformParams: ({ params }) => {
      const changed = { ...params };
      // The SDK's own way would parse the whole text again for each piece.
      if (output) changed.responseFormat = { type: 'json', name: 'answer', schema: output.schema };
      for (const setting of ['temperature', 'topP'] as const) {
        if (sampling || changed[setting] === undefined) continue;
        ignored.add(`${setting}: the model does not take it`);
        changed[setting] = undefined;
      }
      if (provider === 'anthropic' && form === 'budget' && reasoning) addBudget(changed, reasoning);
      const isCached = provider === 'anthropic' && promptCache === 'auto';
      return Promise.resolve(isCached ? withCacheMarks(changed) : changed);
    },
  };
}

/** Asks for reasoning within the maximum of tokens. Without room for it there is none in this step. */
function addBudget(params: SentParams, effort: Effort): void {
  const { maxOutputTokens } = params;
  const budgetTokens = reasoningBudget(effort, maxOutputTokens);
  if (budgetTokens === undefined || params.providerOptions?.anthropic?.thinking !== undefined) return;
  const anthropic = { ...params.providerOptions?.anthropic, thinking: { type: 'enabled', budgetTokens } };
  params.providerOptions = { ...params.providerOptions, anthropic };
  // The SDK adds the budget to the maximum again.
  if (maxOutputTokens !== undefined) params.maxOutputTokens = maxOutputTokens - budgetTokens;
}

/** Collects the SDK's warnings about settings that it does not pass on. */
function notes(ignored: Set<string>, onRequest: ((params: SentParams) => void) | undefined): Middleware {
  return {
    specificationVersion: 'v3',
    wrapStream: async ({ doStream, params }) => {
      onRequest?.(params);
      const result = await doStream();
      const note = new TransformStream<StreamPart, StreamPart>({
        transform(part, controller) {
          if (part.type === 'stream-start')
            for (const warning of part.warnings) ignored.add(textOfWarning(warning));
          controller.enqueue(part);
        },
      });
      return { ...result, stream: result.stream.pipeThrough(note) };
    },
  };
}

const textOfWarning = (warning: ModelWarning): string =>
  warning.type === 'other' ? warning.message : `${warning.feature}: ${warning.details ?? 'is not passed on'}`;

/** The options with those of the agent's settings, which count first. */
function withOwn(config: LlmConfig, provider: ModelProviderName, options: ProviderOptions): ProviderOptions {
  if (!config.providerOptions) return options;
  const name = apiOf(config) === 'chat' ? CHAT : provider;
  const own = ownOptions(provider, config.providerOptions);
  return { ...options, [name]: { ...options[name], ...own } } as ProviderOptions;
}

/** Options of the SDK beside the standard settings. */
function optionsOf(
  { reasoning, api }: LlmConfig,
  provider: ModelProviderName,
  name: string,
): ProviderOptions {
  const { reasoning: form, efforts = EFFORTS } = featuresOf(provider, name);
  // An agent from before a rule may ask for an effort that the model does not take.
  const wanted = reasoning && form !== 'none' ? reasoning : undefined;
  const effort = wanted && (efforts.includes(wanted) ? wanted : efforts.at(-1));
  switch (provider) {
    case 'openai':
      // Schemas need not be "strict" in OpenAI's sense.
      if (api === 'chat')
        return { [CHAT]: { strictJsonSchema: false, ...(effort && { reasoningEffort: effort }) } };
      return {
        openai: {
          // The provider stores nothing.
          store: false,
          strictJsonSchema: false,
          // The SDK treats unknown names as models without reasoning.
          ...(effort && { reasoningEffort: effort, reasoningSummary: 'auto', forceReasoning: true }),
        },
      };
    case 'anthropic':
      // A budget is added with each request.
      if (form !== 'adaptive' || !effort) return {};
      return { anthropic: { thinking: { type: 'adaptive', display: 'summarized' }, effort } };
    case 'google': {
      if (!effort) return {};
      const amount = form === 'level' ? { thinkingLevel: effort } : { thinkingBudget: BUDGETS[effort] };
      return { google: { thinkingConfig: { includeThoughts: true, ...amount } } };
    }
    case 'openai-compatible':
      return effort ? { [CHAT]: { reasoningEffort: effort } } : {};
  }
}
