import { type Message, type Part, Role, type TaskPushNotificationConfig } from '../model.js';
import { Fields } from './fields.js';

/** How a version writes the role of a caller. */
export interface RoleGrammar {
  user: string;
  parse: (value: unknown) => Role;
}

/**
 * Decode and validate the `message` of a send. Members are the same in all versions; roles and parts are not.
 * Where the messageId may be left out it then is empty. Throws `invalid-params`.
 */
export function readMessage(
  params: Fields,
  roles: RoleGrammar,
  messageId: 'required' | 'optional' = 'required',
): Message {
  const message = params.child('message');
  if (!message) throw params.refuse('message', 'is required and must be an object');
  return {
    messageId: messageId === 'required' ? message.requiredId('messageId') : message.id('messageId'),
    contextId: message.contextId(),
    taskId: message.id('taskId'),
    role: readRole(message, roles),
    parts: readParts(message),
    metadata: message.object('metadata'),
    extensions: message.strings('extensions'),
    referenceTaskIds: message.ids('referenceTaskIds'),
  };
}

function readRole(message: Fields, { user, parse }: RoleGrammar): Role {
  if (!message.has('role')) throw message.refuse('role', `is required: send "${user}"`);
  const role = parse(message.get('role'));
  if (role === Role.ROLE_USER) return role;
  throw role === Role.ROLE_AGENT
    ? message.refuse('role', `must be "${user}": only the agent itself speaks as the agent`)
    : message.refuse('role', `is unknown: send "${user}"`);
}

function readParts(message: Fields): Message['parts'] {
  const parts = message.get('parts');
  if (!Array.isArray(parts) || parts.length === 0) {
    throw message.refuse('parts', 'is required and must be a list with at least one part');
  }
  return parts.map((part, index) => readPart(part, `${message.at('parts')}[${index}]`));
}

type Content = NonNullable<Part['content']>;

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
  const [content, ...others] = file ? [...readMembers(fields), ...readFile(file)] : readMembers(fields);
  if (!content) throw fields.refuse('content', `is missing: a part must have ${FORMS}`);
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

function readMembers(fields: Fields): Content[] {
  const text = fields.string('text');
  const data = fields.get('data');
  return [
    ...(text === undefined ? [] : [{ $case: 'text', value: text } as const]),
    ...(data === undefined ? [] : [{ $case: 'data', value: data } as const]),
    ...readRaw(fields, 'raw'),
    ...readUrl(fields, 'url'),
  ];
}

const readFile = (file: Fields): Content[] => [...readRaw(file, 'bytes'), ...readUrl(file, 'uri')];

function readUrl(fields: Fields, name: string): Content[] {
  const value = fields.string(name);
  if (value === '') throw fields.refuse(name, 'must be a non-empty string');
  return value === undefined ? [] : [{ $case: 'url', value }];
}

function readRaw(fields: Fields, name: string): Content[] {
  const text = fields.string(name);
  if (text === undefined) return [];
  if (!BASE64.test(text) || digitsOf(text) % 4 === 1) throw fields.refuse(name, 'must be base64');
  return [{ $case: 'raw', value: Buffer.from(text, 'base64') }];
}

/** Length of a base64 text without its padding, of which there are two characters at most. */
const digitsOf = (text: string): number =>
  text.length - (text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0);

const kindOf = ({ $case }: Content): string => ($case === 'text' || $case === 'data' ? $case : 'file');

function unwrapData(part: Part): Part {
  if (part.content?.$case !== 'data') return part;
  const { [WRAPPED_DATA]: wrapped, ...metadata } = part.metadata ?? {};
  const value: unknown = part.content.value;
  if (wrapped !== true || typeof value !== 'object' || value === null || !('value' in value)) return part;
  // A bare null has no place in the stored form; it stays wrapped.
  if (value.value === null) return part;
  return {
    ...part,
    content: { $case: 'data', value: value.value },
    metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
  };
}

/** Decode a push notification config inside a send; 0.3 lists its authentication `schemes`, 1.0 has one. */
export function readPushConfig(config: Fields): TaskPushNotificationConfig {
  const authentication = config.child('authentication');
  return {
    tenant: '',
    taskId: '',
    id: config.id('id'),
    url: config.string('url') ?? '',
    token: config.string('token') ?? '',
    authentication: authentication && {
      scheme: authentication.string('scheme') ?? authentication.strings('schemes')[0] ?? '',
      credentials: authentication.string('credentials') ?? '',
    },
  };
}
