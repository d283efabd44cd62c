import { OperatorError } from './operator-error.js';

const UNIT_MS = { d: 86_400_000, h: 3_600_000, m: 60_000 };
const DURATION = /^(\d{1,5})([dhm])$/;
const DAY = /^\d{4}-\d{2}-\d{2}$/;
const FORMS = 'give a duration such as 30d, 12h or 45m, or a day such as 2026-12-31';

/**
 * When a token expires: `30d`, `12h` or `45m` from `now` on, or at the end of a day (`2026-12-31`, UTC).
 * Throws OperatorError for anything else, and for a time that has passed.
 */
export function parseExpiry(text: string, now: Date): Date {
  const expiry = afterDuration(text, now) ?? endOfDay(text);
  if (!expiry) throw new OperatorError(`--expires: "${text}" is neither a duration nor a day: ${FORMS}.`);
  if (expiry <= now) throw new OperatorError(`--expires: "${text}" is not in the future: ${FORMS}.`);
  return expiry;
}

function afterDuration(text: string, now: Date): Date | undefined {
  const [, count, unit] = DURATION.exec(text) ?? [];
  return count && unit
    ? new Date(now.getTime() + Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS])
    : undefined;
}

/** The last millisecond of the day. A day that no calendar has (2026-02-30) is refused, not carried over. */
function endOfDay(text: string): Date | undefined {
  if (!DAY.test(text)) return undefined;
  const end = new Date(`${text}T23:59:59.999Z`);
  return !Number.isNaN(end.getTime()) && end.toISOString().startsWith(text) ? end : undefined;
}
