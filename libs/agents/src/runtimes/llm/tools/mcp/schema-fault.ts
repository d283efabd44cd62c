import { isJsonObject, memberOf } from '@baton/a2a';
import type { JsonSchema } from '../tool-sources.js';

const TYPES = new Set(['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']);
/** Members that hold one schema, a list of schemas, or schemas by name. */
const ONE = ['additionalProperties', 'contains', 'else', 'if', 'items', 'not', 'propertyNames', 'then'];
const LISTS = ['allOf', 'anyOf', 'items', 'oneOf', 'prefixItems'];
const NAMED = ['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties'];
/** Characters of a value in a fault. A person must recognise it. */
const MAX_QUOTED = 60;

/**
 * Why a provider would refuse a schema, wherever in it: a type that JSON Schema does not have, a pattern that is no regular
 * expression, or a `$ref` that leads nowhere. One such tool would fail every request of its agent. It takes linear time.
 * @param schema not deeper and larger than `schemaExcess` allows
 * @returns a clause that follows "an input schema"
 */
export function schemaFault(schema: JsonSchema): string | undefined {
  const open: unknown[] = [schema];
  while (open.length > 0) {
    const next = open.pop();
    if (!isJsonObject(next)) continue;
    const { type, pattern, $ref } = next;
    const types = Array.isArray(type) ? type : type === undefined ? [] : [type];
    // Google writes types in capitals.
    const odd: unknown = types.find((each) => typeof each !== 'string' || !TYPES.has(each.toLowerCase()));
    if (odd !== undefined) return `with the type ${quoted(odd)}, which JSON Schema does not have`;
    if (typeof pattern === 'string' && !isPattern(pattern))
      return `with the pattern ${quoted(pattern)}, which is no regular expression`;
    if (typeof $ref === 'string' && !isThere(schema, $ref))
      return `with the $ref ${quoted($ref)}, which leads nowhere`;
    for (const name of ONE) open.push(next[name]);
    for (const name of LISTS) if (Array.isArray(next[name])) open.push(...(next[name] as unknown[]));
    for (const name of NAMED) if (isJsonObject(next[name])) open.push(...Object.values(next[name]));
  }
  return undefined;
}

function isPattern(pattern: string): boolean {
  // Most servers mean expressions without the flag, which allows more.
  for (const flags of ['u', '']) {
    try {
      new RegExp(pattern, flags);
      return true;
    } catch {
      // The next one.
    }
  }
  return false;
}

/** Whether a reference leads to something (RFC 6901). Those to anchors and to other documents are not followed. */
function isThere(schema: JsonSchema, ref: string): boolean {
  if (!ref.startsWith('#/')) return true;
  let at: unknown = schema;
  for (const part of ref.slice(2).split('/')) {
    const name = memberOf(decoded(part));
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, name)) return false;
    at = (at as Record<string, unknown>)[name];
  }
  return true;
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const quoted = (value: unknown): string => JSON.stringify(value).slice(0, MAX_QUOTED);
