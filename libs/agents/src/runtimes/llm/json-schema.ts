import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { Script, createContext } from 'node:vm';

const MAX_REASONS = 5;
/** A pattern that takes longer for one text (in ms) is taken not to match. */
const MAX_PATTERN_MS = 50;
const TEST = new Script('pattern.test(text)');

/** Schemas are written by tenants and tool servers: nothing is printed, and unknown keywords and formats are let be. */
const OPTIONS: Options = {
  strict: false,
  logger: false,
  allErrors: true,
  validateFormats: false,
  code: { regExp: Object.assign(boundedPattern, { code: 'boundedPattern' }) },
};

/** A pattern of a tenant must not hold up a worker: only code in a context of its own can be broken off. */
function boundedPattern(source: string, flags: string): { toString(): string; test(text: string): boolean } {
  const pattern = new RegExp(source, flags);
  return {
    // Ajv tells patterns apart by it.
    toString: () => String(pattern),
    test: (text) => {
      try {
        return TEST.runInContext(createContext({ pattern, text }), { timeout: MAX_PATTERN_MS }) === true;
      } catch {
        return false;
      }
    },
  };
}

const DIALECTS = { old: new Ajv(OPTIONS), new: new Ajv2020(OPTIONS) };

/** Throws if it is no schema. One instance a schema, so that nothing is kept and no `$id` is taken. */
function compile(schema: Record<string, unknown>): ValidateFunction {
  const { $schema: dialect, ...rest } = schema;
  const isOld = typeof dialect === 'string' && dialect.includes('draft-0');
  const rules = isOld ? DIALECTS.old : DIALECTS.new;
  if (rules.validateSchema(rest) !== true) throw new Error(rules.errorsText());
  const Dialect = isOld ? Ajv : Ajv2020;
  return new Dialect({ ...OPTIONS, meta: false, validateSchema: false }).compile(rest);
}

export function isJsonSchema(schema: Record<string, unknown>): boolean {
  try {
    compile(schema);
    return true;
  } catch {
    return false;
  }
}

/** @returns what is wrong with the value, with the path of each field; undefined if nothing is */
export type Check = (value: unknown) => string | undefined;

/** Checks values against a schema. A schema that is none lets everything pass: its owner is not the model. */
export function checkOf(schema: Record<string, unknown>): Check {
  let validate: ValidateFunction;
  try {
    validate = compile(schema);
  } catch {
    return () => undefined;
  }
  return (value) => {
    if (validate(value)) return undefined;
    return (validate.errors ?? []).slice(0, MAX_REASONS).map(sentence).join('; ');
  };
}

function sentence({ instancePath, message, params }: ErrorObject): string {
  const extra: unknown = (params as Record<string, unknown>)['additionalProperty'];
  const named = typeof extra === 'string' ? ` (${extra})` : '';
  return `${instancePath === '' ? 'the value' : instancePath} ${message ?? 'is not valid'}${named}`;
}
