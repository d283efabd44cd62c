import type { ModelProviderName } from '@baton/a2a';
import { type ModelFields, splitModel } from './llm-config.js';

interface WindowRow {
  provider: ModelProviderName;
  /** Matches the name of the model, also with a prefix as gateways write it. */
  name: RegExp;
  tokens: number;
}

/** Windows that are certain. The first row that matches counts. */
const WINDOWS: readonly WindowRow[] = [
  { provider: 'openai', name: /(^|\/)gpt-3\.5/, tokens: 16_000 },
  { provider: 'openai', name: /(^|\/)gpt-4(-\d{4})?$/, tokens: 8_000 },
  { provider: 'openai', name: /(^|\/)gpt-4\.1/, tokens: 1_000_000 },
  { provider: 'openai', name: /(^|\/)(o1-(mini|preview)|gpt-4|chatgpt|gpt-5(\.\d+)?-chat)/, tokens: 128_000 },
  { provider: 'openai', name: /(^|\/)o\d/, tokens: 200_000 },
  // 400,000 with the answer, which may have 128,000 of them.
  { provider: 'openai', name: /(^|\/)gpt-5/, tokens: 272_000 },
  { provider: 'anthropic', name: /claude-(instant|v?2([-.]0)?$)/, tokens: 100_000 },
  { provider: 'anthropic', name: /claude-/, tokens: 200_000 },
  { provider: 'google', name: /gemini-(1\.5|2|3)/, tokens: 1_000_000 },
];

/** The window of a model that no row knows. */
const USUAL_WINDOW = 128_000;

/** Maximum tokens of a request to a model with its answer. */
export function contextWindowOf({
  model,
  contextWindow,
}: Pick<ModelFields, 'model' | 'contextWindow'>): number {
  if (contextWindow !== undefined) return contextWindow;
  const { provider, name } = splitModel(model);
  return WINDOWS.find((row) => row.provider === provider && row.name.test(name))?.tokens ?? USUAL_WINDOW;
}

/** Characters of a token, at least: texts in English have four, JSON and code have three. */
export const CHARACTERS_OF_TOKEN = 3;

/** Maximum share of the window that the results of one step take. */
const RESULTS_SHARE = 0.25;
/** Enough for the head of a result, also in a small window. */
const LEAST_CHARACTERS = 1_000;

/** Maximum characters of one result of a step, so that a step does not fill the window alone. */
export const roomForResult = (window: number, results: number): number =>
  Math.max(
    LEAST_CHARACTERS,
    Math.floor((window * CHARACTERS_OF_TOKEN * RESULTS_SHARE) / Math.max(1, results)),
  );
