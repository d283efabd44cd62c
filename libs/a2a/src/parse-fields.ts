import type { z } from 'zod';
import { type FieldViolation, ProtocolError } from './protocol-error.js';
import { shortened } from './shortened.js';
import { assertWellFormed } from './well-formed.js';

type Issue = z.core.$ZodIssue;

/** Faults that an error names. It must not be larger than the value that it is about. */
const MAX_VIOLATIONS = 20;
/** Characters of the path of a field: its names come from the caller. */
const MAX_FIELD_CHARS = 200;
/** Characters of the rule that a field breaks. */
const MAX_DESCRIPTION_CHARS = 1_000;

const UNKNOWN_KEY = 'is not known here: correct its name or take it out';

/**
 * Parses a value that a person wrote. Throws `invalid-params`, which names the paths of the first 20 wrong fields, such as
 * `config.tools.mcp[0].url`. Text that is not well-formed Unicode is wrong, too.
 * @param at path of the value itself; empty for a whole document
 * @param whole name of the document, for a fault that is in no field
 */
export function parseFields<T extends z.ZodType>(schema: T, raw: unknown, at = '', whole = at): z.output<T> {
  assertWellFormed(raw, at || whole);
  const parsed = schema.safeParse(raw);
  if (parsed.success) return parsed.data;
  const all = parsed.error.issues.flatMap((issue) => violationsOf(issue, at === '' ? [] : [at]));
  const violations = all.slice(0, MAX_VIOLATIONS).map(({ field, description }) => ({
    field: shortened(field, MAX_FIELD_CHARS) || whole,
    description: shortened(description, MAX_DESCRIPTION_CHARS),
  }));
  const clauses = violations.map(({ field, description }) => `${field}: ${description}`);
  const more = all.length - violations.length;
  const message = [...clauses, ...(more > 0 ? [`and ${more} more`] : [])].join('; ');
  throw new ProtocolError('invalid-params', message, { violations });
}

function violationsOf(issue: Issue, at: readonly PropertyKey[]): FieldViolation[] {
  const path = [...at, ...issue.path];
  if (issue.code === 'unrecognized_keys') {
    const description = issue.message.startsWith('Unrecognized') ? UNKNOWN_KEY : issue.message;
    return issue.keys.map((key) => ({ field: formatPath([...path, key]), description }));
  }
  if (issue.code === 'invalid_union') {
    const nearest = nearestBranch(issue.errors);
    if (nearest.length > 0) return nearest.flatMap((each) => violationsOf(each, path));
  }
  const missing = issue.code === 'invalid_type' && issue.message.endsWith('received undefined');
  const description = missing ? `is missing: give it a value of type ${issue.expected}` : issue.message;
  return [{ field: formatPath(path), description }];
}

/** The alternative that the author most likely meant: its faults are the deepest, or else the fewest. */
const nearestBranch = (branches: readonly (readonly Issue[])[]): readonly Issue[] =>
  [...branches].sort((a, b) => depthOf(b) - depthOf(a) || faultsOf(a) - faultsOf(b))[0] ?? [];

const depthOf = (issues: readonly Issue[]): number =>
  Math.max(0, ...issues.map(({ path, code }) => path.length + (code === 'unrecognized_keys' ? 1 : 0)));

const faultsOf = (issues: readonly Issue[]): number =>
  issues.reduce((sum, issue) => sum + (issue.code === 'unrecognized_keys' ? issue.keys.length : 1), 0);

const formatPath = (path: readonly PropertyKey[]): string =>
  path
    .map((key, i) => (typeof key === 'number' ? `[${key}]` : i > 0 ? `.${String(key)}` : String(key)))
    .join('');
