import { ProtocolError } from '../errors.js';

/** Longest id a caller may send (task, message, config), in characters. */
const MAX_ID_LENGTH = 256;
/** A contextId may be any string a caller uses to name a conversation. */
const MAX_CONTEXT_ID_LENGTH = 1024;
const MAX_INT32 = 2 ** 31 - 1;

/** ProtoJSON parsers accept a field under its original name too (`history_length`). */
const snakeName = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/**
 * Reads the members of one JSON object. Every read either returns a value of the right type or throws
 * `invalid-params` with the path of the member and what to do about it. `null` counts as absent.
 */
export class Fields {
  private constructor(
    private readonly source: Record<string, unknown>,
    private readonly path: string,
  ) {}

  /** The members of `params`. Absent params are an empty object. */
  static ofParams(params: unknown): Fields {
    return new Fields(assertObject(params ?? {}, 'params'), '');
  }

  static of(value: unknown, path: string): Fields {
    return new Fields(assertObject(value, path), path);
  }

  /** Path of a member, as errors name it. */
  at(name: string): string {
    return this.path === '' ? name : `${this.path}.${name}`;
  }

  get(name: string): unknown {
    return this.source[name] ?? this.source[snakeName(name)] ?? undefined;
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  refuse(name: string, description: string): ProtocolError {
    return ProtocolError.invalidParams(this.at(name), description);
  }

  child(name: string): Fields | undefined {
    const value = this.get(name);
    return value === undefined ? undefined : Fields.of(value, this.at(name));
  }

  object(name: string): Record<string, unknown> | undefined {
    const value = this.get(name);
    return value === undefined ? undefined : assertObject(value, this.at(name));
  }

  string(name: string): string | undefined {
    const value = this.get(name);
    if (value === undefined || typeof value === 'string') return value;
    throw this.refuse(name, 'must be a string');
  }

  boolean(name: string): boolean | undefined {
    const value = this.get(name);
    if (value === undefined || typeof value === 'boolean') return value;
    throw this.refuse(name, 'must be true or false');
  }

  /** An integer between `min` and `max`. */
  integer(name: string, min: number, max: number): number | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    if (Number.isInteger(value) && (value as number) >= min && (value as number) <= max)
      return value as number;
    throw this.refuse(name, `must be an integer between ${min} and ${max}`);
  }

  /** Unset = all messages, 0 = none, n = the last n. */
  historyLength(): number | undefined {
    return this.integer('historyLength', 0, MAX_INT32);
  }

  /** An id, or `''` when it is absent. */
  id(name: string): string {
    return assertId(this.string(name) ?? '', this.at(name), MAX_ID_LENGTH);
  }

  requiredId(name: string): string {
    const id = this.id(name);
    if (id === '') throw this.refuse(name, 'is required and must be a non-empty string');
    return id;
  }

  contextId(): string {
    return assertId(this.string('contextId') ?? '', this.at('contextId'), MAX_CONTEXT_ID_LENGTH);
  }

  strings(name: string): string[] {
    const value = this.get(name) ?? [];
    if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
    throw this.refuse(name, 'must be a list of strings');
  }

  ids(name: string): string[] {
    return this.strings(name).map((id, index) => assertId(id, `${this.at(name)}[${index}]`, MAX_ID_LENGTH));
  }
}

function assertObject(value: unknown, path: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw ProtocolError.invalidParams(path, 'must be an object');
}

/** Ids are stored as text and compared byte by byte, which NUL and lone surrogates do not survive. */
function assertId(id: string, path: string, max: number): string {
  if (id.length > max) throw ProtocolError.invalidParams(path, `must not be longer than ${max} characters`);
  if (id.includes('\0')) throw ProtocolError.invalidParams(path, 'must not contain the NUL character');
  if (/\p{Surrogate}/u.test(id)) throw ProtocolError.invalidParams(path, 'must be well-formed Unicode');
  return id;
}
