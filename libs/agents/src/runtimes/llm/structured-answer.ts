import { describeExcess, jsonExcess, parseBoundedJson } from '@baton/a2a';
import { withoutFence } from './without-fence.js';

/** Tells the model what is wrong with its answer. */
export const answerCorrection = (wrong: string): string =>
  `That is not what was asked for: ${wrong}. Answer again, with JSON of the schema and nothing else.`;

/** A valid JSON value, or the problem. */
export type StructuredAnswer = { value: unknown } | { wrong: string };

/**
 * Parses and validates the JSON of an answer.
 * @param check validates a text that is JSON: returns the problem, or undefined
 */
export async function structuredAnswer(
  text: string,
  check: (json: string) => Promise<string | undefined>,
): Promise<StructuredAnswer> {
  const json = withoutFence(text.trim());
  if (json === '') return { wrong: 'it is empty' };
  const excess = jsonExcess(json);
  if (excess) return { wrong: `it ${describeExcess(excess)}` };
  const value = parseBoundedJson(json);
  if (value === undefined) return { wrong: 'it is not JSON' };
  const wrong = await check(json);
  return wrong === undefined ? { value } : { wrong };
}
