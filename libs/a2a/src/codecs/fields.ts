import { ProtocolError } from '../protocol-error.js';
import { shortened } from '../shortened.js';

/** Longest id a caller may send (task, message, config), in characters. */
const MAX_ID_LENGTH = 256;
/** A contextId may be any string a caller uses to name a conversation. */
export const MAX_CONTEXT_ID_LENGTH = 1024;
/** Whole numbers of the protocol are `int32` in its .proto file. */
const MAX_INT32 = 2 ** 31 - 1;
const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i;
const TIMESTAMP =
  /^(\d{4}-\d{2}-\d{2})T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$/i;
const FIRST_TIMESTAMP = new Date('0001-01-01T00:00:00Z');
const LAST_TIMESTAMP = new Date('9999-12-31T23:59:59.999Z');

/** Whether the calendar has the day. A Date takes February 30 for March 2. */
function isDay(day: string): boolean {
  const at = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(day);
}

const snakeNames = new Map<string, string>();

/** ProtoJSON parsers accept a field under its original name too (`history_length`). Fields are few, and read for each call. */
function snakeName(name: string): string {
  const known = snakeNames.get(name);
  if (known !== undefined) return known;
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  snakeNames.set(name, snake);
  return snake;
}

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

  /** A member that is null, which is a value only where the field is a google.protobuf.Value. */
  isNull(name: string): boolean {
    return !this.has(name) && (this.source[name] === null || this.source[snakeName(name)] === null);
  }

  get(name: string): unknown {
    return this.source[name] ?? this.source[snakeName(name)] ?? undefined;
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  /** Which members arrived, as the text of an error. */
  names(): string {
    const names = Object.keys(this.source);
    const first = names.slice(0, MAX_NAMES).map((name) => JSON.stringify(shortened(name, MAX_SHOWN)));
    return `only ${first.join(', ') || 'an empty object'}${names.length > MAX_NAMES ? ' …' : ''} arrived`;
  }

  refuse(name: string, description: string): ProtocolError {
    return ProtocolError.invalidParams(this.at(name), description);
  }

  /** The refusal of a value that is not what it must be, such as `a string`. It names what arrived. */
  mismatch(name: string, wanted: string): ProtocolError {
    return this.refuse(name, `must be ${wanted}, not ${quoted(this.get(name))}`);
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
    throw this.mismatch(name, 'a string');
  }

  boolean(name: string): boolean | undefined {
    const value = this.get(name);
    if (value === undefined || typeof value === 'boolean') return value;
    throw this.mismatch(name, 'true or false');
  }

  /** An integer between `min` and `max`, as a number or as the text of one: ProtoJSON has both. */
  integer(name: string, min: number, max: number): number | undefined {
    const value = this.get(name);
    if (value === undefined) return undefined;
    const number = typeof value === 'string' && JSON_NUMBER.test(value) ? Number(value) : value;
    if (Number.isInteger(number) && (number as number) >= min && (number as number) <= max)
      return number as number;
    throw this.mismatch(name, `an integer between ${min} and ${max}`);
  }

  /** A moment of RFC 3339, with any offset and up to nanoseconds, as ProtoJSON writes a Timestamp. Cut to milliseconds. */
  timestamp(name: string): Date | undefined {
    const text = this.string(name);
    if (text === undefined || text === '') return undefined;
    const [, day] = TIMESTAMP.exec(text) ?? [];
    const at = new Date(text);
    if (day !== undefined && isDay(day) && at >= FIRST_TIMESTAMP && at <= LAST_TIMESTAMP) return at;
    throw this.mismatch(name, 'a timestamp such as "2026-01-31T12:00:00.000Z"');
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
    throw this.mismatch(name, 'a list of strings');
  }

  ids(name: string): string[] {
    return this.strings(name).map((id, index) => assertId(id, `${this.at(name)}[${index}]`, MAX_ID_LENGTH));
  }
}

function assertObject(value: unknown, path: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw ProtocolError.invalidParams(path, `must be an object, not ${quoted(value)}`);
}

/** Longest text of a caller that an error quotes, in characters. */
const MAX_SHOWN = 40;
/** Names that an error lists of those that have arrived. */
const MAX_NAMES = 4;

/** A value of a caller as an error names it: little of a text, and nothing of an object. */
function quoted(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(shortened(value, MAX_SHOWN));
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

/** Ids are stored as text and compared byte by byte, which NUL does not survive. */
function assertId(id: string, path: string, max: number): string {
  if (id.length > max) throw ProtocolError.invalidParams(path, `must not be longer than ${max} characters`);
  if (id.includes('\0')) throw ProtocolError.invalidParams(path, 'must not contain the NUL character');
  return id;
}
