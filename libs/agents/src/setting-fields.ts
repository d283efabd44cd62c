import { z } from 'zod';

const DURATION = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)$/;
const RULE = 'must be a duration such as 500ms, 30s or 2m';
const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const DAY_MS = 86_400_000;

/** A duration as text (`500ms`, `30s`, `2m`). It is parsed to milliseconds. */
export const durationText = z
  .string(RULE)
  .regex(DURATION, RULE)
  .transform(millisecondsOf)
  .refine((ms) => ms >= 1 && ms <= DAY_MS, 'must be from 1ms to 24h');

/** A duration with a default. */
export const duration = (defaultText: string) => durationText.prefault(defaultText);

function millisecondsOf(text: string): number {
  const [, amount = '0', unit = 'ms'] = DURATION.exec(text) ?? [];
  return Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS];
}

/** A whole number within bounds. */
export function wholeNumber(min: number, max: number) {
  const allowed = `must be a whole number from ${min} to ${max}`;
  return z.int(allowed).min(min, allowed).max(max, allowed);
}
