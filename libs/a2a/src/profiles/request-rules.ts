import type { Agent } from '../agent.js';
import { ProtocolError } from '../errors.js';
import type { Envelope } from '../json-rpc.js';
import type { Message, Part } from '../model.js';

/** Throws `bad-request` where a request must have an id and this one has none. */
export function assertEnvelopeId(
  { absentId }: { absentId: 'notification' | 'refused' },
  { hasId }: Envelope,
): void {
  if (absentId === 'notification' || hasId) return;
  throw new ProtocolError('bad-request', 'id: is required: notifications are not supported here', {
    violations: [{ field: 'id', description: 'is required' }],
  });
}

/** Throws `bad-request` where the `Accept` header must allow what is answered, and does not. */
export function assertAccept(
  { accept }: { accept: 'any' | 'by-method' },
  header: string | undefined,
  isStreaming: boolean,
): void {
  const type = isStreaming ? 'text/event-stream' : 'application/json';
  if (accept === 'any' || allows(header ?? '', type)) return;
  throw new ProtocolError('bad-request', `the Accept header must allow ${type} for this method`, {
    metadata: { accept: type },
  });
}

/** RFC 9110 §12.5.1, without the ranking: the most specific range that matches decides. */
function allows(header: string, type: string): boolean {
  const ranges = header.split(',').map(readRange);
  const group = `${type.split('/', 1)[0] ?? ''}/*`;
  for (const wanted of [type, group, '*/*']) {
    const matching = ranges.filter(({ range }) => range === wanted);
    if (matching.length > 0) return matching.some(({ refused }) => !refused);
  }
  return false;
}

function readRange(text: string): { range: string; refused: boolean } {
  const [range = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase());
  return { range, refused: parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter)) };
}

export type PartKind = 'text' | 'data' | 'file';

/** Which kinds of parts a profile takes. */
export interface PartRule {
  always: readonly PartKind[];
  /** Files are taken as well by an agent whose input modes name their media type. */
  filesIfDeclared?: boolean;
  /** What anything else is refused with. */
  refusal: 'content-type-not-supported' | 'invalid-params';
}

/** What every agent takes that declares nothing; a file needs more than that. */
const PLAIN_MODES: ReadonlySet<string> = new Set(['text/plain', 'application/json']);

/** Throws the rule's refusal, naming the first part that the profile, or the agent, does not take. */
export function assertParts(rule: PartRule | undefined, message: Message | undefined, agent: Agent): void {
  if (!rule || !message) return;
  message.parts.forEach((part, index) => {
    const kind = kindOf(part);
    if (rule.always.includes(kind)) return;
    if (rule.filesIfDeclared && kind === 'file' && declares(agent, part.mediaType)) return;
    throw refuseKind(rule, kind, `message.parts[${index}]`);
  });
}

/** The refusal of a part of a kind that is not taken. */
export function refuseKind(rule: PartRule, kind: string, path: string): ProtocolError {
  const shown = kind.slice(0, 32);
  const description = `a part of kind "${shown}" is not supported here: send ${rule.always.join(' or ')}`;
  return new ProtocolError(rule.refusal, `${path}: ${description}`, {
    violations: [{ field: path, description }],
  });
}

function kindOf({ content }: Part): PartKind {
  return content?.$case === 'raw' || content?.$case === 'url' ? 'file' : (content?.$case ?? 'data');
}

function declares({ definition }: Agent, mediaType: string): boolean {
  const type = mediaType.toLowerCase();
  const [group = ''] = type.split('/');
  return definition.inputModes
    .map((mode) => mode.toLowerCase())
    .some((mode) => {
      if (PLAIN_MODES.has(mode)) return false;
      return mode === '*/*' || type === '' || mode === type || mode === `${group}/*`;
    });
}
