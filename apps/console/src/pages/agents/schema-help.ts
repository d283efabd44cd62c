import type {
  Completion,
  CompletionContext,
  CompletionResult,
  CompletionSource,
} from '@codemirror/autocomplete';
import type { Schema } from '@cfworker/json-schema';

/** Offers the fields and values that the schema of agents allows where the cursor is. */
export function schemaCompletions(schema: Schema): CompletionSource {
  return (context: CompletionContext): CompletionResult | null => {
    const lines = context.state.doc.toString().split('\n');
    const row = context.state.doc.lineAt(context.pos).number - 1;
    const { from } = context.state.doc.line(row + 1);
    const before = (lines[row] ?? '').slice(0, context.pos - from);
    const runtime = lines.map((line) => /^runtime: *([\w-]+)/.exec(line)?.[1]).find((found) => found);

    const value = /^( *(?:- +)?)([\w-]+): *([\w./-]*)$/.exec(before);
    if (value) {
      const [, indent = '', key = '', typed = ''] = value;
      const path = [...pathAt(lines, row, indent), key];
      const options = schemasAt(schema, path, runtime).flatMap(valuesOf);
      return options.length === 0 ? null : { from: context.pos - typed.length, options };
    }
    const field = /^( *(?:- +)?)([\w-]*)$/.exec(before);
    if (!field || (field[2] === '' && !context.explicit)) return null;
    const [, indent = '', typed = ''] = field;
    const options = schemasAt(schema, pathAt(lines, row, indent), runtime).flatMap(fieldsOf);
    return options.length === 0 ? null : { from: context.pos - typed.length, options };
  };
}

const ITEM = '-';

/** The fields around a line, by their indentation. @param indent the text before the field in its line */
function pathAt(lines: readonly string[], row: number, indent: string): string[] {
  const path: string[] = [];
  let dash = indent.indexOf('-');
  let within = dash < 0 ? indent.length : dash + 1;
  if (dash >= 0) path.unshift(ITEM);
  for (let above = row - 1; above >= 0 && within > 0; above--) {
    const found = /^( *)((?:- +)?)([\w-]+):/.exec(lines[above] ?? '');
    if (!found) continue;
    const [, spaces = '', mark = '', key = ''] = found;
    const column = spaces.length + mark.length;
    dash = mark === '' ? -1 : spaces.length;
    if (column > within || (column === within && dash < 0)) continue;
    if (column < within) path.unshift(key);
    within = column;
    if (dash < 0) continue;
    path.unshift(ITEM);
    within = dash + 1;
  }
  return path;
}

/** The schemas of a field: more than one if there are alternatives. */
function schemasAt(schema: Schema, path: readonly string[], runtime: string | undefined): Schema[] {
  let found = branchesOf(schema, runtime);
  for (const step of path) {
    found = found
      .flatMap((at) => {
        const child = step === ITEM ? at.items : at.properties?.[step];
        return typeof child === 'object' ? [child] : [];
      })
      .flatMap((child) => branchesOf(child, runtime));
  }
  return found;
}

/** A schema with its alternatives, and with what holds for the runtime alone. */
function branchesOf(schema: Schema, runtime: string | undefined): Schema[] {
  const more = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])].flatMap((part) => {
    if (typeof part !== 'object') return [];
    const { if: condition, then } = part as { if?: Schema; then?: Schema };
    if (!condition) return branchesOf(part, runtime);
    const of = (condition.properties as Record<string, Schema> | undefined)?.runtime?.const as unknown;
    return then && of === runtime ? branchesOf(then, runtime) : [];
  });
  return [schema, ...more];
}

/** The help for a field. */
interface Help {
  type?: unknown;
  description?: string;
}

const fieldsOf = ({ properties = {} }: Schema): Completion[] =>
  Object.entries(properties as Record<string, Help>).map(([label, { type, description }]) => ({
    label,
    type: 'property',
    apply: `${label}: `,
    ...(typeof type === 'string' && { detail: type }),
    ...(description !== undefined && { info: description }),
  }));

function valuesOf({ enum: values, const: only, type }: Schema): Completion[] {
  const all: unknown[] = [...((values ?? []) as unknown[]), ...(type === 'boolean' ? [true, false] : [])];
  if (only !== undefined) all.push(only);
  return all.map((label) => ({ label: String(label), type: 'enum' }));
}
