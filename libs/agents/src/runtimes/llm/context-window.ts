import type { ModelProviderName } from '@baton/a2a';
import { type ModelFields, splitModel } from './llm-config.js';

interface WindowRow {
  provider: ModelProviderName;
  /** Matches the name of the model, also with a prefix as gateways write it. */
  name: RegExp;
  tokens: number;
}

/** Documented context windows. The first row that matches counts. */
const WINDOWS: readonly WindowRow[] = [
  { provider: 'openai', name: /(^|\/)gpt-3\.5/, tokens: 16_000 },
  { provider: 'openai', name: /(^|\/)gpt-4(-\d{4})?$/, tokens: 8_000 },
  { provider: 'openai', name: /(^|\/)gpt-4\.1/, tokens: 1_000_000 },
  { provider: 'openai', name: /(^|\/)(o1-(mini|preview)|gpt-4|chatgpt|gpt-5(\.\d+)?-chat)/, tokens: 128_000 },
  { provider: 'openai', name: /(^|\/)o\d/, tokens: 200_000 },
  // 400,000 tokens with the answer, of which 128,000 are reserved for it.
  { provider: 'openai', name: /(^|\/)gpt-5/, tokens: 272_000 },
  { provider: 'anthropic', name: /claude-(instant|v?2([-.]0)?$)/, tokens: 100_000 },
  { provider: 'anthropic', name: /claude-/, tokens: 200_000 },
  { provider: 'google', name: /gemini-(1\.5|2|3)/, tokens: 1_000_000 },
];

/** For models that no row matches: a usual size. */
const DEFAULT_WINDOW = 128_000;

/** Maximum tokens of a request to a model together with its answer. */
export function contextWindowOf({
  model,
  contextWindow,
}: Pick<ModelFields, 'model' | 'contextWindow'>): number {
  if (contextWindow !== undefined) return contextWindow;
  const { provider, name } = splitModel(model);
  return WINDOWS.find((row) => row.provider === provider && row.name.test(name))?.tokens ?? DEFAULT_WINDOW;
}

/** A low estimate: English texts have about four characters a token, JSON and code about three. */
export const CHARACTERS_PER_TOKEN = 3;

/** Maximum share of the window that the results of one step take. */
const RESULTS_SHARE = 0.25;
/** A result always gets this many, so that the model reads its beginning also with a small window. */
const MIN_CHARACTERS = 1_000;

/**
 * Maximum characters of one tool result, so that the results of one step do not fill the window.
 * @param window in tokens @param results number of results of the step
 */
export const maxResultCharacters = (window: number, results: number): number =>
  Math.max(
    MIN_CHARACTERS,
    Math.floor((window * CHARACTERS_PER_TOKEN * RESULTS_SHARE) / Math.max(1, results)),
  );
