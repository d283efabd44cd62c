import { UsageError } from './usage-error.js';

/** A JSON object. Throws UsageError. */
export function jsonOption(option: string, text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { ...value };
  } catch {
    // Not JSON: the error below.
  }
  throw new UsageError(`${option}: this is not a JSON object: give one such as '{"echo": {"chunks": 3}}'.`);
}
