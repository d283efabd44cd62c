import { z } from 'zod';

const DURATION = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)$/;
const RULE = 'must be a duration such as 500ms, 30s or 2m';
const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
const DAY_MS = 86_400_000;

/** A duration as text (`500ms`, `30s`, `2m`); read as milliseconds. */
export const durationText = z
  .string(RULE)
  .regex(DURATION, RULE)
  .transform(millisecondsOf)
  .refine((ms) => ms >= 1 && ms <= DAY_MS, 'must be from 1ms to 24h');

/** The same with a value for where it is left out. */
export const duration = (standard: string) => durationText.prefault(standard);

function millisecondsOf(text: string): number {
  const [, amount = '0', unit = 'ms'] = DURATION.exec(text) ?? [];
  return Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS];
}
