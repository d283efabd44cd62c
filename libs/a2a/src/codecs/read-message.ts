import { type Message, Role } from '../model.js';
import type { Fields } from './fields.js';
import { readPart } from './read-part.js';

/** How a family writes the role of a caller. */
export interface RoleGrammar {
  user: string;
  parse: (value: unknown) => Role;
}

/**
 * Decode and validate the `message` of a send. Members are the same in all families; roles and parts are not.
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
