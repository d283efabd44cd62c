/** A spreadsheet takes a text that begins so for a formula. */
const FORMULA = /^[=+\-@\t\r\n]/;

/** A table as CSV (RFC 4180). Texts that a spreadsheet would take for formulas get an apostrophe before them. */
export const csvOf = (rows: readonly (readonly (string | number | null)[])[]): string =>
  rows.map((row) => `${row.map(cellOf).join(',')}\r\n`).join('');

function cellOf(value: string | number | null): string {
  if (typeof value !== 'string') return value === null ? '' : String(value);
  const text = FORMULA.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
