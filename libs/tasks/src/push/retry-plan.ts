/** Pauses between the tries of a delivery, in ms. */
export interface RetryPauses {
  /** Maximum pause after the first failure. It doubles with each further one. */
  firstMs: number;
  /** Maximum of all pauses, also of those that a receiver asks for. */
  maxMs: number;
}

/** A receiver that refuses at once is not asked again at once. */
const MIN_MS = 100;

/**
 * The pause after a failure: random up to a bound that doubles with each failure ("full jitter"). So the deliveries to a receiver that
 * comes back do not arrive together. Not shorter than the receiver asks for.
 * @param failures how many tries have failed in a row, this one included
 * @param askedMs what the receiver has asked for (`Retry-After`)
 * @param random from 0 to below 1
 */
export function retryPause(
  failures: number,
  { firstMs, maxMs }: RetryPauses,
  askedMs = 0,
  random: () => number = Math.random,
): number {
  // 2 to the power of 1,000 would be Infinity.
  const bound = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 50));
  const pause = Math.max(MIN_MS, random() * bound);
  // Configs with the same due time still get their tries one after the other.
  const asked = askedMs > 0 ? askedMs + random() * firstMs : 0;
  return Math.round(Math.min(maxMs, Math.max(pause, asked)));
}

/** The pause of a `Retry-After` header in ms: seconds, or a date of HTTP. 0 = there is none that can be read. */
export function retryAfterMs(header: string | null, now = Date.now()): number {
  const text = header?.trim() ?? '';
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  // Other dates than those of HTTP (RFC 9110 §5.6.7) would be read in the time zone of this process.
  const at = /^[A-Z][a-z]{2}, .{1,30} GMT$/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(at) ? 0 : Math.max(0, at - now);
}
