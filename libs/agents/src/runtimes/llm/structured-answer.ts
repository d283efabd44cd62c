import { describeExcess, jsonExcess } from '@baton/a2a';
import type { ModelStep } from './journal-entry.js';

/** The text of an answer. */
export const textOfStep = ({ message: { content } }: Pick<ModelStep, 'message'>): string =>
  typeof content === 'string'
    ? content
    : content.map((part) => (part.type === 'text' ? part.text : '')).join('');

/** What the model thought before it answered. */
export const reasoningOfStep = ({ message: { content } }: Pick<ModelStep, 'message'>): string =>
  typeof content === 'string'
    ? ''
    : content.map((part) => (part.type === 'reasoning' ? part.text : '')).join('');

/** A JSON value of the agent's schema, or what is wrong with it. */
export type StructuredAnswer = { value: unknown } | { wrong: string };

/**
 * Reads the JSON of an answer.
 * @param check what is wrong with a text that is JSON; undefined if nothing is
 */
export async function structuredAnswer(
  text: string,
  check: (json: string) => Promise<string | undefined>,
): Promise<StructuredAnswer> {
  const json = withoutFence(text.trim());
  if (json === '') return { wrong: 'it is empty' };
  const excess = jsonExcess(json);
  if (excess) return { wrong: `it ${describeExcess(excess)}` };
  let value: unknown;
  try {
    // oxlint-disable-next-line no-restricted-properties -- bounded above
    value = JSON.parse(json);
  } catch {
    return { wrong: 'it is not JSON' };
  }
  const wrong = await check(json);
  return wrong === undefined ? { value } : { wrong };
}

const FENCE = '```';

/** Some models wrap what they are asked for. In linear time: the text may be made to be slow. */
function withoutFence(text: string): string {
  if (!text.startsWith(FENCE) || !text.endsWith(FENCE)) return text;
  const lineEnd = text.indexOf('\n');
  const language = text.slice(FENCE.length, Math.max(lineEnd, FENCE.length)).trim();
  if (lineEnd < 0 || lineEnd > text.length - FENCE.length || !['', 'json'].includes(language)) return text;
  return text.slice(lineEnd + 1, -FENCE.length).trim();
}
