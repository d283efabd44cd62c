import { type OutputUnit, type Schema, Validator } from '@cfworker/json-schema';
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml';
import type { Problem } from '../../components/code-editor';

/** The YAML of an agent, which knows on which line each of its fields is. */
export class AgentSource {
  private readonly lines = new LineCounter();
  private readonly document;

  constructor(text: string) {
    this.document = parseDocument(text, { lineCounter: this.lines, prettyErrors: false });
  }

  /** What the text means; undefined if it is no YAML. */
  get value(): unknown {
    return this.document.errors.length > 0 ? undefined : (this.document.toJS() as unknown);
  }

  /** What is no YAML, and what the schema does not allow. */
  problems(schema: Schema | undefined): Problem[] {
    if (this.document.errors.length > 0) {
      return this.document.errors.map(({ message, pos: [start] }) => ({
        line: this.lineAt(start),
        severity: 'error' as const,
        message: message.replace(/[:.]$/, ''),
      }));
    }
    if (!schema) return [];
    const { errors } = new Validator(schema, '2020-12', false).validate(this.value ?? null);
    const problems = errors.flatMap((unit) => this.problemOf(unit));
    // Two rules of the schema can find the same fault.
    const isFirst = ({ line, message }: Problem, i: number): boolean =>
      problems.findIndex((each) => each.line === line && each.message === message) === i;
    return problems.filter(isFirst);
  }

  /** A fault that the server has found. @param field such as `config.agents[0]` */
  at(field: string, message: string, severity: Problem['severity']): Problem {
    const path = field.split(/[.[\]]+/).filter((step) => step !== '');
    return { line: this.lineOf(path), message: `${field}: ${message}`, severity };
  }

  private problemOf({ keyword, keywordLocation, instanceLocation, error }: OutputUnit): Problem[] {
    // What is wrong in one of several alternatives, or around what is wrong, says less than the fault itself.
    if (WRAPPERS.has(keyword) || /\/(anyOf|oneOf)\//.test(keywordLocation)) return [];
    const path = instanceLocation.split('/').slice(1).map(unescapePointer);
    const field = path.join('.');
    const message = wordsFor(keyword, error);
    return [
      {
        line: this.lineOf(path),
        severity: 'error',
        message: field === '' ? message : `${field}: ${message}`,
      },
    ];
  }

  /** The line of a field. Of one that is missing, that of the nearest field around it. */
  private lineOf(path: readonly string[]): number {
    let node: unknown = this.document.contents;
    let line = this.lineAt((node as Node | null)?.range?.[0] ?? 0);
    for (const step of path) {
      const found = childOf(node, step);
      if (!found) return line;
      line = this.lineAt(found.start);
      node = found.value;
    }
    return line;
  }

  private lineAt(offset: number): number {
    return this.lines.linePos(offset).line || 1;
  }
}

const WRAPPERS = new Set(['properties', 'items', 'allOf', 'if', 'then', 'additionalProperties', '$ref']);

/** What the validator says of a value, in the words of the server. */
function wordsFor(keyword: string, error: string): string {
  const [, named] = /"([^"]*)"\.?$/.exec(error) ?? [];
  const [, limit] = /([\d.]+)\)?\.$/.exec(error) ?? [];
  const words: Record<string, string | undefined> = {
    false: 'is not known',
    additionalProperties: 'is not known',
    required: named && `${named} is missing`,
    type: named && `must be of the type ${named}`,
    enum:
      /\[(.*)\]/.exec(error)?.[1] && `must be one of ${/\[(.*)\]/.exec(error)?.[1]?.replaceAll(',', ', ')}`,
    const: named && `must be "${named}"`,
    anyOf: 'has none of the allowed forms',
    oneOf: 'has none of the allowed forms',
    pattern: 'does not have the allowed form',
    format: 'does not have the allowed form',
    minLength: limit && `must have at least ${limit} characters`,
    maxLength: limit && `must have at most ${limit} characters`,
    minItems: limit && `must have at least ${limit} entries`,
    maxItems: limit && `must have at most ${limit} entries`,
    minimum: limit && `must be at least ${limit}`,
    maximum: limit && `must be at most ${limit}`,
  };
  return words[keyword] ?? error;
}

/** RFC 6901. */
const unescapePointer = (step: string): string =>
  decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');

/** Where a member begins, and its value. */
function childOf(node: unknown, step: string): { start: number; value: unknown } | undefined {
  if (isMap(node)) {
    const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === step);
    return pair && { start: (pair.key as Node).range?.[0] ?? 0, value: pair.value };
  }
  const item = isSeq(node) ? (node.items[Number(step)] as Node | undefined) : undefined;
  return item && { start: item.range?.[0] ?? 0, value: item };
}
