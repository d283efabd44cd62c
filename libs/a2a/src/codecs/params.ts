import { type Message, type Part, Role, type TaskPushNotificationConfig } from '../model.js';
import { Fields } from './fields.js';

/** The value that typed clients send for an enum that was left out or is unknown to them. */
export const UNRECOGNIZED = 'UNRECOGNIZED';

/** How a version writes a message, as far as versions differ. */
export interface MessageGrammar {
  /** The role of a caller. */
  user: string;
  parse: (value: unknown) => Role;
  /** What the list of parts may be called; unset = `parts`. */
  partsNames?: readonly string[];
  /** Converts a part from the form of the version to the form that `readPart` reads. */
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
    throw message.refuse('role', `must be "${user}": only the agent itself sends messages as the agent`);
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
