import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import type { Work, WorkResult } from './compute-pool.js';

// Runs in a thread that is terminated when a piece of work takes too long. Tenants may share only code and compiled
// schemas in it.

/** The model corrects its output with these. The first ones often cause the others. */
const MAX_REASONS = 5;
/** Maximum length of one reason: it contains names of fields, which may be long. */
const MAX_REASON = 300;
/** Maximum text of all schemas whose validators are kept, in characters. */
const MAX_KEPT = 262_144;
/** The priority of the thread, as Linux counts it: threads that answer callers go first. */
const NICE = 5;

const isLinux = process.platform === 'linux';
if (isLinux) setPriority(NICE);
/** The number of this thread in /proc/self/task; 0 where there is none. */
const THREAD = isLinux ? Number(readlinkSync('/proc/thread-self').split('/').at(-1)) : 0;

/** Tenants and tool servers write the schemas: so nothing is printed, and unknown keywords and formats are ignored. */
const OPTIONS: Options = { strict: false, logger: false, allErrors: true, validateFormats: false };
const DIALECTS = { old: new Ajv(OPTIONS), new: new Ajv2020(OPTIONS) };

type Compiled = { validate: ValidateFunction } | { problem: string };
/** By the text of the schema, the one used last at the end. */
const compiled = new Map<string, Compiled>();
let kept = 0;

/** One piece of work. `started` is set when it begins, to 1 and the thread: until then it has used no time of its own. */
export default function compute({ work, started }: { work: Work; started: Int32Array }): WorkResult {
  const beganAt = performance.now();
  Atomics.store(started, 1, THREAD);
  Atomics.store(started, 0, 1);
  const problem = problemOf(work);
  return { tookMs: performance.now() - beganAt, ...(problem !== undefined && { problem }) };
}

function problemOf(work: Work): string | undefined {
  switch (work.kind) {
    case 'compile': {
      const found = compile(work.schema);
      return 'problem' in found ? found.problem.slice(0, MAX_REASON) : undefined;
    }
    case 'check':
      return valueProblem(work.schema, work.value);
  }
}

function valueProblem(schema: string, value: string): string | undefined {
  const found = compile(schema);
  // An invalid schema accepts every value, because the author of the value is not its owner.
  if ('problem' in found || found.validate(JSON.parse(value))) return undefined;
  const reasons = (found.validate.errors ?? []).slice(0, MAX_REASONS).map(sentence);
  found.validate.errors = null;
  return reasons.join('; ');
}

function compile(text: string): Compiled {
  const known = compiled.get(text);
  const result = known ?? compileAnew(text);
  if (known) compiled.delete(text);
  else kept += text.length;
  compiled.set(text, result);
  for (const [oldest] of compiled) {
    if (kept <= MAX_KEPT) break;
    compiled.delete(oldest);
    kept -= oldest.length;
  }
  return result;
}

/** One instance a schema, so that no `$id` is taken. */
function compileAnew(text: string): Compiled {
  try {
    const { $schema: dialect, ...rest } = JSON.parse(text) as Record<string, unknown>;
    const isOld = typeof dialect === 'string' && dialect.includes('draft-0');
    const rules = isOld ? DIALECTS.old : DIALECTS.new;
    if (rules.validateSchema(rest) !== true) return { problem: rules.errorsText() };
    const Dialect = isOld ? Ajv : Ajv2020;
    return { validate: new Dialect({ ...OPTIONS, meta: false, validateSchema: false }).compile(rest) };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

function sentence({ instancePath, message, params }: ErrorObject): string {
  const extra: unknown = (params as Record<string, unknown>)['additionalProperty'];
  const named = typeof extra === 'string' ? ` (${extra})` : '';
  const text = `${instancePath === '' ? 'the value' : instancePath} ${message ?? 'is not valid'}${named}`;
  return text.length > MAX_REASON ? `${text.slice(0, MAX_REASON)}…` : text;
}
