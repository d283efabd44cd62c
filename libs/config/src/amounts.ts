// Amounts of money are whole millionths of the currency (`micros`), so that sums are exact. Texts have them in decimals.

const AMOUNT = /^(\d{1,9})(?:\.(\d{1,6}))?$/;
const MICROS = 1_000_000;

/** How an amount is written, for errors. */
export const MAX_AMOUNT = '999999999.999999';

/** Reads an amount such as `2.50`. @returns millionths; undefined if it is no amount */
export function parseMicros(text: string): number | undefined {
  const [, whole, decimals = ''] = AMOUNT.exec(text) ?? [];
  return whole === undefined ? undefined : Number(whole) * MICROS + Number(decimals.padEnd(6, '0'));
}

/** An amount with at least two decimals, such as `2.50` or `0.0004`. */
export function formatMicros(micros: number): string {
  const decimals = String(micros % MICROS).padStart(6, '0');
  return `${Math.floor(micros / MICROS)}.${decimals.slice(0, 2)}${decimals.slice(2).replace(/0+$/, '')}`;
}
