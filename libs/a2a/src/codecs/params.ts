import { ProtocolError, shortened } from '../errors.js';
import { type Message, type Part, Role, type TaskPushNotificationConfig } from '../model.js';

/** Longest id a caller may send (task, message, config), in characters. */
const MAX_ID_LENGTH = 256;
/** A contextId may be any string a caller uses to name a conversation. */
const MAX_CONTEXT_ID_LENGTH = 1024;
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

  /** A member that is there and says null, which is a value only where the field is a google.protobuf.Value. */
  isNull(name: string): boolean {
    return !this.has(name) && (this.source[name] === null || this.source[snakeName(name)] === null);
  }

  get(name: string): unknown {
    return this.source[name] ?? this.source[snakeName(name)] ?? undefined;
  }

  has(name: string): boolean {
    return this.get(name) !== undefined;
  }

  /** Which members arrived, as an error says it. */
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
    return this.refuse(name, `must be ${wanted}, not ${shown(this.get(name))}`);
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
  throw ProtocolError.invalidParams(path, `must be an object, not ${shown(value)}`);
}

/** Longest text of a caller that an error quotes, in characters. */
const MAX_SHOWN = 40;
const MAX_NAMES = 4;

/** A value of a caller as an error names it: little of a text, and nothing of an object. */
function shown(value: unknown): string {
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

/** What typed clients write for an enum that was left out, or given as something that they do not know. */
export const UNRECOGNIZED = 'UNRECOGNIZED';

/** How a version writes a message, as far as versions differ. */
export interface MessageGrammar {
  /** The role of a caller. */
  user: string;
  parse: (value: unknown) => Role;
  /** What the list of parts may be called; unset = `parts`. */
  partsNames?: readonly string[];
  /** Turns a part of the version's own form into one that `readPart` knows. */
  unwrapPart?: (part: unknown) => unknown;
}

/**
 * Decode and validate the `message` of a send. Members are the same in all versions; roles and parts are not.
 * Where the messageId may be left out it then is empty. Throws `invalid-params`.
 */
export function readMessage(
  params: Fields,
  grammar: MessageGrammar,
  messageId: 'required' | 'optional' = 'required',
): Message {
  const message = params.child('message');
  if (!message) throw params.refuse('message', 'is required and must be an object');
  return {
    messageId: messageId === 'required' ? message.requiredId('messageId') : message.id('messageId'),
    contextId: message.contextId(),
    taskId: message.id('taskId'),
    role: readRole(message, grammar),
    parts: readParts(message, grammar),
    metadata: message.object('metadata'),
    extensions: message.strings('extensions'),
    referenceTaskIds: message.ids('referenceTaskIds'),
  };
}

function readRole(message: Fields, { user, parse }: MessageGrammar): Role {
  if (!message.has('role')) throw message.refuse('role', `is required: send "${user}"`);
  const role = parse(message.get('role'));
  if (role === Role.ROLE_USER) return role;
  if (role === Role.ROLE_AGENT) {
    throw message.refuse('role', `must be "${user}": only the agent itself speaks as the agent`);
  }
  if (message.get('role') === UNRECOGNIZED) {
    throw message.refuse(
      'role',
      `arrived as "${UNRECOGNIZED}": your client library did not know the value that it was given; give it its own ` +
        `constant (Role.ROLE_USER), not a text, so that it sends "${user}"`,
    );
  }
  throw message.mismatch('role', `"${user}"`);
}

function readParts(message: Fields, grammar: MessageGrammar): Message['parts'] {
  const { partsNames = ['parts'], unwrapPart = (part) => part } = grammar;
  const name = partsNames.find((each) => message.has(each)) ?? partsNames[0] ?? 'parts';
  const parts = message.get(name);
  if (parts !== undefined && !Array.isArray(parts)) throw message.mismatch(name, 'a list of parts');
  if (parts === undefined || parts.length === 0) {
    throw message.refuse(name, 'is required and must be a list with at least one part');
  }
  return parts.map((part, index) => readPart(unwrapPart(part), `${message.at(name)}[${index}]`));
}

type PartContent = NonNullable<Part['content']>;

const FORMS = 'one of text, raw, url, data (or kind "text", "file", "data" with its member)';
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/;
/** Set by SDKs that carry a 1.0 data value which is no object through 0.3 (`{value: …}`). */
export const WRAPPED_DATA = 'data_part_compat';

/**
 * Decode one part in any of the forms the versions write: the 1.0 member form, and the older ones with
 * `kind` or `type`. Exactly one content is allowed.
 */
export function readPart(value: unknown, path: string): Part {
  const fields = Fields.of(value, path);
  const file = fields.child('file');
  const contents = file ? [...readMembers(fields), ...readFile(file)] : readMembers(fields);
  // Many clients write null for members that are not there. So null is a value only if nothing else is one.
  if (contents.length === 0 && fields.isNull('data')) contents.push({ $case: 'data', value: null });
  const [content, ...others] = contents;
  if (!content) throw fields.refuse('content', `is missing: ${fields.names()}; a part must have ${FORMS}`);
  if (others.length > 0) throw fields.refuse('content', `is ambiguous: a part must have exactly ${FORMS}`);
  const kind = fields.string('kind') ?? fields.string('type') ?? kindOf(content);
  if (kind !== kindOf(content)) throw fields.refuse('kind', `does not match: a part must have ${FORMS}`);
  const part = {
    content,
    metadata: fields.object('metadata'),
    filename: file?.string('name') ?? fields.string('filename') ?? '',
    mediaType: file?.string('mimeType') ?? fields.string('mediaType') ?? '',
  };
  return fields.has('kind') ? unwrapData(part) : part;
}

function readMembers(fields: Fields): PartContent[] {
  const text = fields.string('text');
  const data = fields.get('data');
  return [
    ...(text === undefined ? [] : [{ $case: 'text', value: text } as const]),
    ...(data === undefined ? [] : [{ $case: 'data', value: data } as const]),
    ...readRaw(fields, 'raw'),
    ...readUrl(fields, 'url'),
  ];
}

const readFile = (file: Fields): PartContent[] => [...readRaw(file, 'bytes'), ...readUrl(file, 'uri')];

function readUrl(fields: Fields, name: string): PartContent[] {
  const value = fields.string(name);
  if (value === '') throw fields.refuse(name, 'must be a non-empty string');
  return value === undefined ? [] : [{ $case: 'url', value }];
}

function readRaw(fields: Fields, name: string): PartContent[] {
  const text = fields.string(name);
  if (text === undefined) return [];
  if (!isBase64(text)) throw fields.refuse(name, 'must be base64');
  return [{ $case: 'raw', value: Buffer.from(text, 'base64') }];
}

/** Base64 of either alphabet, with all of its padding or with none. */
function isBase64(text: string): boolean {
  if (!BASE64.test(text)) return false;
  return text.endsWith('=') ? text.length % 4 === 0 : text.length % 4 !== 1;
}

const kindOf = ({ $case }: PartContent): string => ($case === 'text' || $case === 'data' ? $case : 'file');

function unwrapData(part: Part): Part {
  if (part.content?.$case !== 'data') return part;
  const { [WRAPPED_DATA]: wrapped, ...metadata } = part.metadata ?? {};
  const value: unknown = part.content.value;
  if (wrapped !== true || typeof value !== 'object' || value === null || !('value' in value)) return part;
  return {
    ...part,
    content: { $case: 'data', value: value.value },
    metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
  };
}

/**
 * Decode a push notification config; 0.3 lists its authentication `schemes`, 1.0 has one. What its values may be is checked
 * where it is stored: an agent without push refuses any.
 * @param taskId empty in a send
 */
export function readPushConfig(config: Fields, taskId = ''): TaskPushNotificationConfig {
  const authentication = config.child('authentication');
  return {
    tenant: '',
    taskId,
    id: config.id('id'),
    url: config.string('url') ?? '',
    token: config.string('token') ?? '',
    authentication: authentication && {
      scheme: authentication.string('scheme') ?? authentication.strings('schemes')[0] ?? '',
      credentials: authentication.string('credentials') ?? '',
    },
  };
}
