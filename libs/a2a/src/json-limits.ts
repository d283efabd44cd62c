import { ProtocolError } from './errors.js';

/** Deepest nesting a request may have. Far above any real message, far below what overflows a stack. */
export const MAX_JSON_DEPTH = 200;

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
