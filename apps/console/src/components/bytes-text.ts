const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'] as const;
const STEP = 1_024;
const COUNT = new Intl.NumberFormat();
const NUMBER = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });

/** A number of bytes for people: `797 bytes`, `1.5 MiB`, `10 GiB`. */
export function bytesText(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= STEP && unit < UNITS.length - 1) {
    value /= STEP;
    unit += 1;
  }
  return `${NUMBER.format(value)} ${UNITS[unit]}`;
}

/** The value of a limit, by its name: some are numbers of bytes. */
export const limitText = (name: string, value: number): string =>
  name.endsWith('Bytes') ? bytesText(value) : COUNT.format(value);
