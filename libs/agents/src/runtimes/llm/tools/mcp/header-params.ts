import { isJsonObject, type JsonObject } from '@baton/a2a';
import type { JsonSchema } from '../tool-sources.js';

/** A parameter of a tool that is also sent as a header (MCP 2026-07-28, `x-mcp-header`). */
export interface HeaderParam {
  header: string;
  /** Names of properties, from the root of the input. */
  path: readonly string[];
}

const KEYWORD = 'x-mcp-header';
/** Keywords whose members are schemas by name, and those whose values are data. */
const MAPS = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);
const DATA = new Set(['default', 'const', 'enum', 'examples']);
const TYPES: readonly unknown[] = ['string', 'integer', 'boolean'];

/** The parameters that the schema of a tool marks. A text: why a mark is not valid, as a clause about the tool. */
export function headerParams(schema: JsonSchema): HeaderParam[] | string {
  const params: HeaderParam[] = [];
  const problem = collect(schema, [], params);
  if (problem !== undefined) return problem;
  const names = new Set(params.map(({ header }) => header.toLowerCase()));
  return names.size === params.length ? params : `marks two parameters with the same ${KEYWORD}`;
}

/** @param path undefined: a value of the input is not reached from the root by properties alone */
function collect(
  schema: unknown,
  path: readonly string[] | undefined,
  params: HeaderParam[],
): string | undefined {
  if (Array.isArray(schema))
    return firstProblem(schema.map((each) => () => collect(each, undefined, params)));
  if (!isJsonObject(schema)) return undefined;
  const marked = KEYWORD in schema ? mark(schema, path, params) : undefined;
  if (marked !== undefined) return marked;
  return firstProblem(
    Object.entries(schema)
      .filter(([keyword]) => !DATA.has(keyword))
      .flatMap(([keyword, value]) =>
        MAPS.has(keyword) && isJsonObject(value)
          ? Object.entries(value).map(([name, each]) => () => {
              const below = keyword === 'properties' && path ? [...path, name] : undefined;
              return collect(each, below, params);
            })
          : [() => collect(value, undefined, params)],
      ),
  );
}

function mark(
  schema: JsonObject,
  path: readonly string[] | undefined,
  params: HeaderParam[],
): string | undefined {
  const header = schema[KEYWORD];
  if (typeof header !== 'string' || !/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(header))
    return `has an ${KEYWORD} that is not the name of a header`;
  if (!path || path.length === 0) return `has an ${KEYWORD} "${header}" at no fixed place of its input`;
  if (!TYPES.includes(schema.type))
    return `has an ${KEYWORD} "${header}" at a parameter that is no text, integer or boolean`;
  params.push({ header, path });
  return undefined;
}

function firstProblem(checks: readonly (() => string | undefined)[]): string | undefined {
  for (const check of checks) {
    const problem = check();
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** The headers `Mcp-Param-…` of a call. */
export function paramHeaders(params: readonly HeaderParam[], input: unknown): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { header, path } of params) {
    const value = path.reduce<unknown>(
      (at, name) => (isJsonObject(at) && Object.hasOwn(at, name) ? at[name] : undefined),
      input,
    );
    if (['string', 'number', 'boolean'].includes(typeof value))
      headers[`mcp-param-${header}`] = headerValue(String(value));
  }
  return headers;
}

/** A value as a header can have it: as it is, or else in Base64 with marks around it. */
export function headerValue(value: string): string {
  const isPlain = /^(|[\x21-\x7e]|[\x21-\x7e][\t\x20-\x7e]*[\x21-\x7e])$/.test(value);
  if (isPlain && !/^=\?base64\?.*\?=$/.test(value)) return value;
  return `=?base64?${Buffer.from(value, 'utf8').toString('base64')}?=`;
}
