import { ProtocolError } from './errors.js';
import { assertWellFormed } from './well-formed.js';

/** Deepest nesting that JSON of others may have. Far above any real message, far below what overflows a stack. */
export const MAX_JSON_DEPTH = 200;
/** Most values (members and items, nested ones included) of one JSON document of others. */
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
 * Counts the depth and the values of JSON before anybody parses it, in one pass over its bytes (UTF-8), which may come
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

/** What a whole JSON text has too much of; undefined if nothing is. */
export const jsonExcess = (text: string, bounds = JSON_BOUNDS): JsonExcess | undefined =>
  new JsonScanner(bounds).scan(Buffer.from(text));

/** The same as a clause about the text, such as `is nested deeper than 200 levels`. */
export const describeExcess = (excess: JsonExcess, { maxDepth, maxValues } = JSON_BOUNDS): string =>
  excess === 'depth' ? `is nested deeper than ${maxDepth} levels` : `has more than ${maxValues} JSON values`;

/** The refusal of a request whose JSON has too much of something. */
export function excessError(excess: JsonExcess): ProtocolError {
  const remedy =
    excess === 'depth'
      ? 'flatten it or send the content as text or a file'
      : 'send less at once, or the content as text or a file';
  const metadata: Record<string, string> =
    excess === 'depth' ? { maxDepth: String(MAX_JSON_DEPTH) } : { maxValues: String(MAX_JSON_VALUES) };
  return new ProtocolError('invalid-request', `the request ${describeExcess(excess)}: ${remedy}`, {
    metadata,
  });
}

/**
 * The JSON value of a request's body, of bounded depth and size, without keys that would reach a prototype, and well-formed.
 * Throws `parse` if it is no JSON, `invalid-request` naming the bound or the key, `invalid-params` naming the field.
 */
export function parseJsonBody(text: string): unknown {
  if (text.trim() === '') throw new ProtocolError('parse', 'the body is missing: send JSON');
  const excess = jsonExcess(text);
  if (excess) throw excessError(excess);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ProtocolError('parse', 'the body is not JSON: correct it');
  }
  assertJsonLimits(value);
  assertWellFormed(value, 'the body');
  return value;
}

/**
 * Refuse JSON that is nested deeper than `max` or that carries keys which would reach an object's prototype
 * when somebody copies it (`__proto__`, `constructor.prototype`). Iterative, so that the check itself can't
 * overflow. Throws `invalid-request` naming the limit or the key.
 */
export function assertJsonLimits(value: unknown, max = MAX_JSON_DEPTH): void {
  let level: object[] = isNode(value) ? [value] : [];
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > max) {
      throw new ProtocolError(
        'invalid-request',
        `the request is nested deeper than ${max} levels: flatten it or send the content as text or a file`,
        { metadata: { maxDepth: String(max) } },
      );
    }
    const next: object[] = [];
    for (const node of level) collectChildren(node, next);
    level = next;
  }
}

/** Whether a JSON value is nested deeper than `max`. Iterative, too. */
export function isDeeper(value: unknown, max: number): boolean {
  let level: object[] = isNode(value) ? [value] : [];
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > max) return true;
    level = level.flatMap((node) => Object.values(node).filter(isNode));
  }
  return false;
}

function collectChildren(node: object, into: object[]): void {
  if (!Array.isArray(node)) assertSafeKeys(node);
  for (const child of Object.values(node)) if (isNode(child)) into.push(child);
}

function assertSafeKeys(node: object): void {
  if (Object.hasOwn(node, '__proto__')) throw forbiddenKey('__proto__');
  const ctor: unknown = Object.hasOwn(node, 'constructor') ? node.constructor : undefined;
  if (isNode(ctor) && Object.hasOwn(ctor, 'prototype')) throw forbiddenKey('constructor.prototype');
}

const forbiddenKey = (key: string): ProtocolError =>
  new ProtocolError('invalid-request', `the key "${key}" is not allowed in a request: rename it`, {
    metadata: { key },
  });

const isNode = (value: unknown): value is object => typeof value === 'object' && value !== null;
