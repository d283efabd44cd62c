/** Deepest nesting that JSON of others may have. Far above any real message, far below what overflows a stack. */
export const MAX_JSON_DEPTH = 200;
/** Maximum number of values (members and items, nested ones included) of one JSON document from outside. */
export const MAX_JSON_VALUES = 100_000;

/** What a JSON document has too much of. */
export type JsonExcess = 'depth' | 'values';

/** How deep JSON may be nested, and how many values it may have. */
export interface JsonBounds {
  maxDepth: number;
  maxValues: number;
}

export const JSON_BOUNDS: JsonBounds = { maxDepth: MAX_JSON_DEPTH, maxValues: MAX_JSON_VALUES };

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];
/** A string is looked at byte by byte up to here, then from quote to quote. */
const SHORT_STRING = 64;

/**
 * Counts the depth and the values of JSON before it is parsed, in one pass over its bytes (UTF-8), which may come
 * in pieces. It does not check the grammar: whatever it lets pass costs a parser time and memory in proportion.
 */
export class JsonScanner {
  /** Where the last member of the outermost value ended, in bytes from the start; undefined before the first comma. */
  lastMemberEnd: number | undefined;
  private depth = 0;
  private values = 0;
  private inString = false;
  private escaped = false;
  private scanned = 0;

  constructor(private readonly bounds = JSON_BOUNDS) {}

  /** @returns what there is too much of, up to here; undefined if nothing is */
  scan(bytes: Uint8Array): JsonExcess | undefined {
    const { maxDepth, maxValues } = this.bounds;
    for (let i = 0; i < bytes.length; i++) {
      if (this.inString) {
        i = this.endOfString(bytes, i);
        continue;
      }
      const byte = bytes[i];
      if (byte === QUOTE) this.inString = true;
      else if (byte === OPEN_LIST || byte === OPEN_OBJECT) {
        this.depth += 1;
        this.values += 1;
        if (this.depth > maxDepth) return 'depth';
      } else if (byte === CLOSE_LIST || byte === CLOSE_OBJECT) this.depth -= 1;
      else if (byte === COMMA) {
        this.values += 1;
        if (this.depth === 1) this.lastMemberEnd = this.scanned + i;
      }
      if (this.values > maxValues) return 'values';
    }
    this.scanned += bytes.length;
    return undefined;
  }

  /** @returns the index of the quote that ends the string, or of the last byte that was looked at */
  private endOfString(bytes: Uint8Array, from: number): number {
    let i = this.escaped ? from + 1 : from;
    this.escaped = false;
    for (const near = Math.min(bytes.length, i + SHORT_STRING); i < near; i++) {
      if (bytes[i] === BACKSLASH) i += 1;
      else if (bytes[i] === QUOTE) {
        this.inString = false;
        return i;
      }
    }
    if (i > bytes.length) this.escaped = true;
    if (i >= bytes.length) return bytes.length;
    const found = bytes.indexOf(QUOTE, i);
    const end = found < 0 ? bytes.length : found;
    let backslashes = 0;
    while (end - backslashes > i && bytes[end - backslashes - 1] === BACKSLASH) backslashes += 1;
    const isEscaped = backslashes % 2 === 1;
    if (found < 0) this.escaped = isEscaped;
    else if (!isEscaped) this.inString = false;
    return end;
  }
}
