import type { ModelStep } from './journal-entry.js';
import type { Check } from './json-schema.js';

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

/** Some models wrap what they are asked for. */
const FENCE = /^```(?:json)?\s*\n([\s\S]*?)\n?```$/;

export function structuredAnswer(text: string, check: Check): StructuredAnswer {
  const trimmed = text.trim();
  try {
    const value: unknown = JSON.parse(FENCE.exec(trimmed)?.[1] ?? trimmed);
    const wrong = check(value);
    return wrong === undefined ? { value } : { wrong };
  } catch {
    return { wrong: trimmed === '' ? 'it is empty' : 'it is not JSON' };
  }
}
