import { firstCharacters } from '@baton/a2a';
import type { ToolResultPart } from 'ai';
import type { ToolResult } from './tools/tool-sources.js';

/** The tool with which a model reads on in a result that was cut. */
export const READ_RESULT = 'read_result';

/** Maximum characters of a result that a model reads at once. */
const MAX_CHARACTERS = 100_000;

/** Whether a model reads only the beginning of a result. */
export const isCut = (result: ToolResult, room: number): boolean =>
  textOfResult(result).length > readLimit(result, room);

const readLimit = ({ limit = MAX_CHARACTERS }: ToolResult, room: number): number => Math.min(limit, room);

/**
 * A tool result as the model reads it.
 * @param id the id with which the model reads on
 * @param room maximum characters
 */
export function resultOutput(result: ToolResult, id: string, room: number): ToolResultPart['output'] {
  const { ok } = result;
  const whole = textOfResult(result);
  const value = isCut(result, room) ? beginning(whole, readLimit(result, room), id) : whole;
  // Anthropic refuses errors without a text.
  return { type: ok ? 'text' : 'error-text', value: value.trim() === '' ? '(no output)' : value };
}

function beginning(whole: string, limit: number, id: string): string {
  const start = firstCharacters(whole, limit);
  return (
    `${start}\n[cut off: these are the first ${start.length} of ${whole.length} characters. ` +
    `To read on, call ${READ_RESULT} with {"result":"${id}","from":${start.length}}]`
  );
}

/** A result as text. */
export const textOfResult = ({ content, text }: ToolResult): string =>
  text ?? (typeof content === 'string' ? content : JSON.stringify(content ?? null));
