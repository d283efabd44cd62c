import { isJsonObject } from './json-object.js';
/** A part of a message in the JSON of A2A 1.0, as far as questions need it. */
export interface SpokenPart {
  text?: string;
  data?: unknown;
}

/** A field of a question, as a form shows it. */
export interface QuestionField {
  name: string;
  label: string;
  description: string | undefined;
  kind: 'text' | 'email' | 'url' | 'date' | 'number' | 'integer' | 'boolean' | 'choice';
  isRequired: boolean;
  /** For a choice: values and their labels. */
  choices: { value: string; label: string }[];
  initial: string | number | boolean | undefined;
  min: number | undefined;
  max: number | undefined;
}

type Members = Record<string, unknown>;

/** A form with more fields is answered in words. */
const MAX_FIELDS = 50;
/** A field with more choices is answered in words: a person does not find one in a longer list. */
const MAX_CHOICES = 200;
const FORMATS: Readonly<Record<string, QuestionField['kind']>> = { email: 'email', uri: 'url', date: 'date' };

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

/**
 * The fields that a question asks for. It has a data part `{"requestedSchema": …}`, a JSON Schema as in an elicitation of MCP: an
 * object whose members are texts, numbers, booleans or choices. Undefined: it has no such schema, or no form can show it.
 */
export const questionFields = (parts: readonly SpokenPart[]): QuestionField[] | undefined =>
  schemaFields(parts.map(({ data }) => isJsonObject(data) && data.requestedSchema).find(isJsonObject));

/** The fields of such a schema. Undefined: it has no such schema, or no form can show it. */
export function schemaFields(schema: Members | undefined): QuestionField[] | undefined {
  if (!schema || !isJsonObject(schema.properties)) return undefined;
  const required = Array.isArray(schema.required) ? schema.required : [];
  const members = Object.entries(schema.properties);
  if (members.length === 0 || members.length > MAX_FIELDS) return undefined;
  const fields = members.map(([name, member]) => fieldOf(name, member, required.includes(name)));
  return fields.every((field) => field !== undefined) ? fields : undefined;
}

/** The parts of a question that people read: all but the schema of its form, and the calls in it, which its text names. */
export const readableParts = <Part extends SpokenPart>(parts: readonly Part[]): Part[] =>
  parts.filter(
    ({ data }) => !isJsonObject(data) || !(isJsonObject(data.requestedSchema) || isJsonObject(data.approval)),
  );

function fieldOf(name: string, member: unknown, isRequired: boolean): QuestionField | undefined {
  if (!isJsonObject(member)) return undefined;
  const { type, title, description, format, default: initial } = member;
  const isText = type === 'string';
  const choices = choicesOf(member);
  const kind = choices
    ? 'choice'
    : isText
      ? (FORMATS[textOf(format) ?? ''] ?? 'text')
      : (['number', 'integer', 'boolean'] as const).find((each) => each === type);
  if (kind === undefined) return undefined;
  const isInitial =
    typeof initial === 'string' || typeof initial === 'number' || typeof initial === 'boolean';
  return {
    name,
    label: textOf(title) ?? name,
    description: textOf(description),
    kind,
    isRequired,
    choices: choices ?? [],
    initial: isInitial ? initial : undefined,
    min: numberOf(isText ? member.minLength : member.minimum),
    max: numberOf(isText ? member.maxLength : member.maximum),
  };
}

/** `enum` with `enumNames`, or `oneOf` with `const` and `title`. */
function choicesOf({ type, enum: values, enumNames, oneOf }: Members): QuestionField['choices'] | undefined {
  if (type !== 'string') return undefined;
  const names: unknown[] = Array.isArray(enumNames) ? enumNames : [];
  const all: [unknown, unknown][] | undefined = Array.isArray(values)
    ? values.map((value, i) => [value, names[i]])
    : Array.isArray(oneOf)
      ? oneOf.map((each) => (isJsonObject(each) ? [each.const, each.title] : [undefined, undefined]))
      : undefined;
  if (!all || all.length > MAX_CHOICES) return undefined;
  const texts = all.flatMap(([value, label]) =>
    typeof value === 'string' ? [{ value, label: textOf(label) ?? value }] : [],
  );
  return texts.length === all.length ? texts : undefined;
}
