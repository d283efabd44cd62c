import type { ToolResultPart } from 'ai';
import type { ToolResult } from './agent-tool.js';

/** More than that of one result would only push the conversation out of the model's sight. */
const MAX_CHARACTERS = 100_000;

/** What the model reads of a result. */
export function resultOutput({ ok, content, text }: ToolResult): ToolResultPart['output'] {
  const whole = text ?? (typeof content === 'string' ? content : JSON.stringify(content ?? null));
  const cut = whole.length - MAX_CHARACTERS;
  const value =
    cut > 0 ? `${whole.slice(0, MAX_CHARACTERS)}\n… (${cut} more characters were cut off)` : whole;
  return { type: ok ? 'text' : 'error-text', value };
}
