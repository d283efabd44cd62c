/** A provider of language models, or a kind of server that has models. */
interface ModelProvider {
  /** The URL of its API; null = the agent must name one (`baseUrl`). */
  url: string | null;
  /** Its interfaces. An agent may choose one with `api`. Default: the first. */
  apis: readonly [ModelApi, ...ModelApi[]];
  /** Whether it answers only with a key. The secret with the key has the provider's name unless the agent names another. */
  isKeyNeeded: boolean;
}

/** The interfaces of model providers. */
export type ModelApi = 'chat' | 'responses' | 'anthropic' | 'google';

/**
 * The providers of language models. `provider/model` in the settings of an agent begins with one of these names. Their types,
 * their checks, the default origins of secrets and the help of the command line derive from this table. CONTRIBUTING.md lists
 * what else a new provider needs.
 */
export const MODEL_PROVIDERS = {
  openai: { url: 'https://api.openai.com/v1', apis: ['responses', 'chat'], isKeyNeeded: true },
  anthropic: { url: 'https://api.anthropic.com/v1', apis: ['anthropic'], isKeyNeeded: true },
  google: {
    url: 'https://generativelanguage.googleapis.com/v1beta',
    apis: ['google'],
    isKeyNeeded: true,
  },
  'openai-compatible': { url: null, apis: ['chat'], isKeyNeeded: false },
} as const satisfies Record<string, ModelProvider>;

/** The name of a provider. */
export type ModelProviderName = keyof typeof MODEL_PROVIDERS;

/** The names of all providers. */
export const MODEL_PROVIDER_NAMES = Object.keys(MODEL_PROVIDERS) as ModelProviderName[];

/** A row of the table of providers. */
export const modelProvider = (name: ModelProviderName): ModelProvider => MODEL_PROVIDERS[name];
