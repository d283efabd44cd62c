import type { ModelProviderName } from '@baton/a2a';
/** Amounts of reasoning, as in the settings of an agent. */
export const EFFORTS = ['low', 'medium', 'high'] as const;
export type Effort = (typeof EFFORTS)[number];

/**
 * How a model is asked to reason: `effort` by name (OpenAI), `adaptive` with an effort, `budget` of tokens, `level` by
 * name (Gemini 3). `none`: it does not reason.
 */
type ReasoningForm = 'effort' | 'adaptive' | 'budget' | 'level' | 'none';

/** Settings that a model accepts. */
interface ModelFeatures {
  reasoning: ReasoningForm;
  /** The efforts that it takes. Unset: all. */
  efforts?: readonly Effort[];
  /** Whether it takes `temperature` and `topP`. */
  sampling: boolean;
}

interface ModelRow extends ModelFeatures {
  provider: ModelProviderName;
  /** Matches the name of the model, also with a prefix as gateways write it. */
  name: RegExp;
}

/** The first row that matches counts. A name without a row counts as one of the newest models. */
const MODELS: readonly ModelRow[] = [
  { provider: 'openai', name: /(^|\/)(gpt-3|gpt-4|chatgpt)/, reasoning: 'none', sampling: true },
  { provider: 'openai', name: /(^|\/)gpt-5(\.\d+)?-chat/, reasoning: 'none', sampling: true },
  { provider: 'openai', name: /(^|\/)o1-(mini|preview)/, reasoning: 'none', sampling: false },
  {
    provider: 'openai',
    name: /(^|\/)o\d.*deep-research/,
    reasoning: 'effort',
    efforts: ['medium'],
    sampling: false,
  },
  { provider: 'openai', name: /(^|\/)gpt-5-pro/, reasoning: 'effort', efforts: ['high'], sampling: false },
  {
    provider: 'openai',
    name: /(^|\/)gpt-5\.\d+-pro/,
    reasoning: 'effort',
    efforts: ['medium', 'high'],
    sampling: false,
  },
  { provider: 'openai', name: /(^|\/)(o\d|gpt-\d)/, reasoning: 'effort', sampling: false },

  { provider: 'anthropic', name: /claude-3[-.]7/, reasoning: 'budget', sampling: true },
  { provider: 'anthropic', name: /claude-(instant|v?[23]([-.]|$))/, reasoning: 'none', sampling: true },
  // 4 to 4.5. A date may follow: claude-sonnet-4-20250514.
  {
    provider: 'anthropic',
    name: /claude-(opus|sonnet|haiku)-4([-.][0-5](?!\d))?(?![-.]\d{1,2}(?!\d))/,
    reasoning: 'budget',
    sampling: true,
  },
  { provider: 'anthropic', name: /claude-(opus|sonnet|haiku)-4[-.]6/, reasoning: 'adaptive', sampling: true },
  { provider: 'anthropic', name: /claude-/, reasoning: 'adaptive', sampling: false },
  // Models of other providers behind an interface like Anthropic's.
  { provider: 'anthropic', name: /./, reasoning: 'budget', sampling: true },

  {
    provider: 'google',
    name: /gemini-(1|2\.0)|gemini-2\.5.*(image|tts)|gemma/,
    reasoning: 'none',
    sampling: true,
  },
  { provider: 'google', name: /gemini-2\.5/, reasoning: 'budget', sampling: true },
  { provider: 'google', name: /gemini-3-pro/, reasoning: 'level', efforts: ['low', 'high'], sampling: true },
  { provider: 'google', name: /./, reasoning: 'level', sampling: true },
];

/** Servers behind `openai-compatible` decide themselves. So do gateways with names of their own. */
const OTHERS: ModelFeatures = { reasoning: 'effort', sampling: true };

/** Settings that a model of a provider accepts. */
export const featuresOf = (provider: string, name: string): ModelFeatures =>
  MODELS.find((row) => row.provider === provider && row.name.test(name)) ?? OTHERS;

/** Token budgets of `budget`. */
export const BUDGETS = { low: 2_048, medium: 8_192, high: 24_576 } as const;
/** Anthropic's minimum. */
const LEAST_BUDGET = 1_024;
/** The least `maxOutputTokens` with a budget: half of them for the answer. */
const LEAST_OUTPUT = 2 * LEAST_BUDGET;

/**
 * Tokens for reasoning. They are part of the answer's tokens, and leave at least half of these for its text.
 * @returns undefined if there is no room for reasoning
 */
export function reasoningBudget(effort: Effort, maxOutputTokens: number | undefined): number | undefined {
  const budget = Math.min(BUDGETS[effort], Math.floor((maxOutputTokens ?? Infinity) / 2));
  return budget < LEAST_BUDGET ? undefined : budget;
}

interface ModelSettings {
  reasoning?: Effort | undefined;
  temperature?: number | undefined;
  topP?: number | undefined;
  maxOutputTokens?: number | undefined;
}

/** A setting that the model does not accept. */
interface RefusedSetting {
  field: keyof ModelSettings;
  message: string;
}

/** Settings that a model does not accept, each with the remedy. */
export function refusedSettings(provider: string, name: string, settings: ModelSettings): RefusedSetting[] {
  const { reasoning, temperature, topP, maxOutputTokens } = settings;
  const features = featuresOf(provider, name);
  const { efforts = EFFORTS } = features;
  const refusals: RefusedSetting[] = [];
  const refuse = (field: keyof ModelSettings, message: string) => refusals.push({ field, message });
  if (reasoning !== undefined && features.reasoning === 'none') {
    refuse('reasoning', `"${name}" does not reason: remove it, or choose another model`);
  } else if (reasoning !== undefined && !efforts.includes(reasoning)) {
    refuse('reasoning', `must be ${efforts.map((effort) => `"${effort}"`).join(' or ')} with "${name}"`);
  }
  const isClaude = provider === 'anthropic' && name.includes('claude');
  for (const field of ['temperature', 'topP'] as const) {
    if (settings[field] === undefined) continue;
    if (!features.sampling) refuse(field, `is not taken by "${name}": remove it`);
    else if (isClaude && reasoning !== undefined)
      refuse(field, `is not taken together with reasoning: remove it`);
  }
  if (provider === 'anthropic' && temperature !== undefined && temperature > 1) {
    refuse('temperature', 'must be a number from 0 to 1 with anthropic');
  }
  if (isClaude && temperature !== undefined && topP !== undefined && reasoning === undefined) {
    refuse('topP', `is not taken together with temperature by "${name}": remove one of them`);
  }
  const needsBudget = provider === 'anthropic' && features.reasoning === 'budget' && reasoning !== undefined;
  if (needsBudget && maxOutputTokens !== undefined && maxOutputTokens < LEAST_OUTPUT) {
    refuse('maxOutputTokens', `must be at least ${LEAST_OUTPUT} with reasoning, which is part of it`);
  }
  return refusals;
}
