import { type OutputUnit, type Schema, Validator } from '@cfworker/json-schema';
import type { Problem } from '../../components/code-editor';
import { YamlSource } from '@baton/contract';

/** The YAML of an agent, checked against the schema of agent files. */
export class AgentSource {
  private readonly yaml: YamlSource;

  constructor(text: string) {
    this.yaml = new YamlSource(text);
  }

  /** The parsed value. Undefined if the text is not YAML. */
  get value(): unknown {
    return this.yaml.value;
  }

  /** The syntax errors, or the violations of the schema. */
  problems(schema: Schema | undefined): Problem[] {
    const { faults } = this.yaml;
    if (faults.length > 0)
      return faults.map(({ line, text }) => ({ line, severity: 'error', message: text }));
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
    return { line: this.yaml.lineOf(field), message: `${field}: ${message}`, severity };
  }

  private problemOf({ keyword, keywordLocation, instanceLocation, error }: OutputUnit): Problem[] {
    // A fault in one of several alternatives, or around the fault itself, is less exact than the fault itself.
    if (WRAPPERS.has(keyword) || /\/(anyOf|oneOf)\//.test(keywordLocation)) return [];
    const path = instanceLocation.split('/').slice(1).map(unescapePointer);
    const field = path.join('.');
    const message = wordsFor(keyword, error);
    return [
      {
        line: this.yaml.lineOf(path),
        severity: 'error',
        message: field === '' ? message : `${field}: ${message}`,
      },
    ];
  }
}

const WRAPPERS = new Set(['properties', 'items', 'allOf', 'if', 'then', 'additionalProperties', '$ref']);

/** The validator's fault of a value, in the words of the server. */
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
