import type { ModelApi, ModelProviderName } from '@baton/a2a';

/** Options of a provider, as its package of the AI SDK takes them, by the name of the provider. */
export type OptionsByProvider = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** Maximum characters of `providerOptions` as JSON. */
const MAX_OPTIONS = 16_384;
/** The check of each level calls itself. */
const MAX_DEPTH = 16;

/** The names under which the AI SDK takes the options of a provider. */
const NAMES: Record<ModelProviderName, readonly [string, ...string[]]> = {
  openai: ['openai'],
  anthropic: ['anthropic'],
  google: ['google'],
  'openai-compatible': ['openaiCompatible', 'openai-compatible'],
};

/** Options that Baton sets, and those with which the provider would call tools or keep conversations without Baton. */
const REFUSED: Record<ModelApi, readonly string[]> = {
  chat: [
    'model',
    'messages',
    'tools',
    'tool_choice',
    'functions',
    'stream',
    'stream_options',
    'n',
    'max_tokens',
    'max_completion_tokens',
  ],
  responses: ['previousResponseId', 'conversation'],
  anthropic: ['mcpServers', 'container'],
  google: [],
};

const SECRET_NAME =
  /(^|[-_])(authorization|password|secret)$|api[-_]?key$|(access|authorization|auth|bearer)[-_]?token$/i;
const SECRET_VALUE = /^(bearer\s|sk-|AIza)/i;

interface OptionsProblem {
  path: string[];
  message: string;
}

/** Why `providerOptions` cannot be sent: where, and the rule. Undefined: they can. */
export function optionsProblem(
  provider: ModelProviderName,
  api: ModelApi,
  options: OptionsByProvider,
): OptionsProblem | undefined {
  const names = NAMES[provider];
  const foreign = Object.keys(options).find((name) => !names.includes(name));
  if (foreign !== undefined) {
    return { path: [foreign], message: `must be options of the model's provider: "${names[0]}"` };
  }
  for (const [name, given] of Object.entries(options)) {
    const refused = Object.keys(given).find((key) => REFUSED[api].includes(key));
    if (refused !== undefined)
      return { path: [name, refused], message: 'cannot be set by an agent: remove it' };
  }
  const problem = problemIn(options, []);
  if (problem || JSON.stringify(options).length <= MAX_OPTIONS) return problem;
  return { path: [], message: `must have at most ${MAX_OPTIONS} characters of JSON` };
}

/** A value that is not JSON, or is a secret by its name or its beginning. */
function problemIn(value: unknown, path: string[]): OptionsProblem | undefined {
  if (path.length > MAX_DEPTH) return { path: [], message: `must have at most ${MAX_DEPTH} levels` };
  if (typeof value === 'string' && SECRET_VALUE.test(value)) return { path, message: SECRET };
  if (typeof value !== 'object' || value === null)
    return isScalar(value) ? undefined : { path, message: NOT_JSON };
  const isPlain = Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype;
  if (!isPlain) return { path, message: NOT_JSON };
  for (const [key, each] of Object.entries(value)) {
    const inside = [...path, key];
    const problem = SECRET_NAME.test(key) ? { path: inside, message: SECRET } : problemIn(each, inside);
    if (problem) return problem;
  }
  return undefined;
}

const SECRET = 'must not be a secret: others can read the settings of agents';
const NOT_JSON = 'must be a JSON value';

const isScalar = (value: unknown): boolean =>
  value === null || ['string', 'boolean'].includes(typeof value) || Number.isFinite(value);

/** The options of the model's provider. */
export const ownOptions = (
  provider: ModelProviderName,
  options: OptionsByProvider = {},
): Record<string, unknown> =>
  Object.assign({}, ...NAMES[provider].map((name) => options[name])) as Record<string, unknown>;
