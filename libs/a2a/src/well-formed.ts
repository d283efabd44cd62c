import { ProtocolError } from './protocol-error.js';
import { shortened } from './shortened.js';

// JSON can carry half of a surrogate pair (`"\ud83d"`) and numbers that no double holds (`1e400`). Protocol buffers, UTF-8 and
// most clients cannot. So callers may not send them, and no answer has them.

/** Deeper values are refused elsewhere (`MAX_JSON_DEPTH`). The bound keeps the stack from an overflow before that. */
const MAX_DEPTH = 1_000;

/**
 * The value with U+FFFD in place of each lone surrogate, in all its texts and names of members. The same value if it has none.
 * Bytes stay as they are.
 */
export const wellFormed = <T>(value: T): T => (isWellFormed(value) ? value : (mended(value, 1) as T));

function mended(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value) || depth > MAX_DEPTH)
    return value;
  if (Array.isArray(value)) return value.map((item: unknown) => mended(item, depth + 1));
  const members = Object.entries(value).map(([name, member]) => [
    name.toWellFormed(),
    mended(member, depth + 1),
  ]);
  return Object.fromEntries(members);
}

/** JSON writes a lone surrogate as an escape. This finds every such text, and some others. */
const MAYBE_LONE = /\\u[dD][89a-fA-F]/;
/** An escape of JSON: of a pair, of a lone surrogate, or another one. */
const ESCAPE = /\\(?:u(?<pair>d[89ab][\da-f]{2}\\ud[c-f][\da-f]{2})|u(?<lone>d[89a-f][\da-f]{2})|.)/gis;

/** JSON text with U+FFFD in place of each lone surrogate. The same text if it has none, which takes one search to find out. */
export function wellFormedJson(json: string): string {
  if (!MAYBE_LONE.test(json)) return json;
  return json.replace(ESCAPE, (escape, _pair, lone) => (lone === undefined ? escape : '\\ufffd'));
}

/** `JSON.stringify` for answers: the text is well-formed Unicode, whatever was stored. */
export const answerJson = (value: unknown): string => wellFormedJson(JSON.stringify(value));

const ILL_FORMED =
  'must be well-formed Unicode: it has half of a surrogate pair; send the whole character or none';
const NOT_FINITE = 'must be a finite number: no double holds it; send it as a text';

/**
 * Refuses texts of a caller that are not well-formed Unicode, and numbers that are not finite.
 * @param whole what the value itself is called
 * @throws ProtocolError `invalid-params`, naming the field
 */
export function assertWellFormed(value: unknown, whole: string): void {
  if (isWellFormed(value, true)) return;
  const { path, description } = faultIn(value, '') ?? { path: '', description: ILL_FORMED };
  throw ProtocolError.invalidParams(path || whole, description);
}

/** Iterative, and without paths: every request and every output of an agent is looked at. */
function isWellFormed(value: unknown, isFinite = false): boolean {
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === 'string') {
      if (!next.isWellFormed()) return false;
    } else if (typeof next === 'number') {
      if (isFinite && !Number.isFinite(next)) return false;
    } else if (typeof next !== 'object' || next === null || ArrayBuffer.isView(next)) continue;
    else if (Array.isArray(next)) for (const item of next as unknown[]) open.push(item);
    else {
      // Not `Object.entries`: for objects with many members it takes twice as long.
      for (const name of Object.keys(next)) {
        if (!name.isWellFormed()) return false;
        open.push((next as Record<string, unknown>)[name]);
      }
    }
  }
  return true;
}

/** Longest path that an error names, in characters. */
const MAX_PATH = 200;

/** The first fault of a value, by its path. */
function faultIn(value: unknown, path: string): { path: string; description: string } | undefined {
  const at = shortened(path, MAX_PATH);
  if (typeof value === 'string')
    return value.isWellFormed() ? undefined : { path: at, description: ILL_FORMED };
  if (typeof value === 'number')
    return Number.isFinite(value) ? undefined : { path: at, description: NOT_FINITE };
  if (typeof value !== 'object' || value === null || isWellFormed(value, true)) return undefined;
  for (const [name, member] of Object.entries(value)) {
    if (!name.isWellFormed()) return { path: at, description: `has a member whose name ${ILL_FORMED}` };
    const below = Array.isArray(value) ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`;
    const fault = faultIn(member, below);
    if (fault) return fault;
  }
  return undefined;
}
