import { ProtocolError } from './protocol-error.js';
import { assertWellFormed } from './well-formed.js';
import {
  JSON_BOUNDS,
  type JsonExcess,
  JsonScanner,
  MAX_JSON_DEPTH,
  MAX_JSON_VALUES,
} from './json-scanner.js';

/** What a whole JSON text has too much of; undefined if nothing is. */
export const jsonExcess = (text: string, bounds = JSON_BOUNDS): JsonExcess | undefined =>
  new JsonScanner(bounds).scan(Buffer.from(text));

/** Describes an excess as a clause about the text, such as `is nested deeper than 200 levels`. */
export const describeExcess = (excess: JsonExcess): string =>
  excess === 'depth'
    ? `is nested deeper than ${MAX_JSON_DEPTH} levels`
    : `has more than ${MAX_JSON_VALUES} JSON values`;

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
 * when code copies it (`__proto__`, `constructor.prototype`). Iterative, so that the check itself cannot
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
