/** Where a command writes. */
export interface Terminal {
  /** Results: tables, JSON, an agent's answer. */
  out(text: string): void;
  /** Everything else: errors and notes. */
  err(text: string): void;
  /** Where progress is shown; unset, or no terminal: nowhere. */
  progress?: NodeJS.WriteStream;
  /** Writes records as data, with `--output yaml`; unset = as JSON. */
  encode?: (value: unknown) => string;
}

const GAP = '  ';
// C0 and C1 controls except tab and newline: names and answers come from others and must not control the terminal.
// Those for the direction of a text could show what waits for approval as something else.
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Bidi_Control}]/gu;

/** The text without the characters a terminal would act upon. */
export const printable = (text: string): string => text.replace(CONTROLS, '');

/** The text in one line of at most `length` characters. */
export function oneLine(text: string, length = 100): string {
  const line = printable(text).replace(/\s+/g, ' ').trim();
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}

/** A point in time in the time zone of this machine, as `2026-12-31 23:59:59 +01:00`; `-` for none. */
export function formatTime(time: Date | null): string {
  if (!time) return '-';
  const minutes = -time.getTimezoneOffset();
  const local = new Date(time.getTime() + minutes * 60_000).toISOString().slice(0, 19).replace('T', ' ');
  const [hour, minute] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60].map(twoDigits);
  return `${local} ${minutes < 0 ? '-' : '+'}${hour ?? ''}:${minute ?? ''}`;
}

/** `formatTime` of a time as the API writes it. */
export const formatTimeText = (text: string | null | undefined): string =>
  formatTime(text == null ? null : new Date(text));

const twoDigits = (number: number): string => String(number).padStart(2, '0');

/**
 * Columns aligned at the left, two spaces apart, the titles in the first line.
 * @param indents of a tree: how many spaces the first cell of each row is moved to the right
 */
export function formatTable(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  indents: readonly number[] = [],
): string {
  const indent = (row: number, column: number): string => (column === 0 ? ' '.repeat(indents[row] ?? 0) : '');
  const lines = [
    titles.map((title) => title.toUpperCase()),
    ...rows.map((row, i) => row.map((cell, column) => `${indent(i, column)}${oneLine(cell)}`)),
  ];
  const widths = titles.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join(GAP)
        .trimEnd(),
    )
    .join('\n');
}

/** Print one value as data: JSON, or what `--output` asks for. */
export const printValue = (terminal: Terminal, value: unknown): void =>
  terminal.out(terminal.encode ? terminal.encode(value) : JSON.stringify(value, null, 2));

/** Print one of many values, as soon as it is there: a line of JSON, or a document of a YAML stream. */
export const printNext = (terminal: Terminal, value: unknown): void =>
  terminal.out(terminal.encode ? `---\n${terminal.encode(value)}` : JSON.stringify(value));

/** Print records as a table, or a sentence when there are none. */
export function printTable(
  terminal: Terminal,
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  none: string,
): void {
  if (rows.length > 0) terminal.out(formatTable(titles, rows));
  else terminal.err(none);
}

/** Print one record: a line for each field, its name first. */
export function printFields(
  terminal: Terminal,
  fields: readonly (readonly [name: string, value: string])[],
  nameWidth = 12,
): void {
  const lines = fields.map(([name, value]) => `${name.padEnd(nameWidth)} ${oneLine(value, 200)}`);
  terminal.out(lines.join('\n'));
}

/** Print an error in an agent's code, with its stack and what the run wrote to its console. */
export function printRunError(
  terminal: Terminal,
  { message, stack, output = [] }: { message: string; stack?: string | null; output?: readonly string[] },
): void {
  const lines = ['', stack ?? message, ...(output.length > 0 ? ['', 'Its console:'] : []), ...output];
  terminal.out(printable(lines.join('\n')));
}

/** Bytes as a whole number of MiB. */
export const inMib = (bytes: number): number => Math.round(bytes / (1024 * 1024));
