import { Option } from 'commander';
import { UsageError } from './usage-error.js';

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `--since` and the like: a duration back from `now`, such as 90m, 12h or 7d, or a time. Throws UsageError. */
export function sinceOf(text: string, now = Date.now(), option = '--since'): Date {
  const [, count, unit = ''] = /^(\d{1,5})([mhd])$/.exec(text) ?? [];
  const time = count === undefined ? Date.parse(text) : now - Number(count) * (UNITS[unit] ?? NaN);
  if (!Number.isNaN(time)) return new Date(time);
  throw new UsageError(
    `${option}: "${text}" is neither a duration such as 2h or 7d nor a time such as 2026-12-31T08:00:00Z.`,
  );
}

/** An option that takes one of a few words. */
export const choice = (
  flags: string,
  description: string,
  words: readonly string[],
  preset: string,
): Option => new Option(flags, description).choices(words).default(preset);

/** A whole number from 1 to `max`. Throws UsageError. */
export function parseCount(option: string, text: string, max: number, min = 1): number {
  const count = /^\d{1,9}$/.test(text) ? Number(text) : -1;
  if (count >= min && count <= max) return count;
  throw new UsageError(`${option}: "${text}" is not a whole number from ${min} to ${max}.`);
}
