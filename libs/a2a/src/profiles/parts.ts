import type { Agent } from '../agent.js';
import { ProtocolError } from '../errors.js';
import type { Message, Part } from '../model.js';

export type PartKind = 'text' | 'data' | 'file';

/** What parts a profile takes: certain kinds, or those whose media types the agent declares (A2A 1.0 §3.1.1). */
export type PartRule = KindRule | 'input-modes';

/** Which kinds of parts a profile takes. */
export interface KindRule {
  always: readonly PartKind[];
  /** Files are taken as well by an agent whose input modes name their media type. */
  filesIfDeclared?: boolean;
  /** What anything else is refused with. */
  refusal: 'content-type-not-supported' | 'invalid-params';
}

/** What every agent takes that declares nothing; a file needs more than that. A2A 0.2 wrote kinds of parts as modes. */
const PLAIN_MODES: ReadonlySet<string> = new Set(['text/plain', 'application/json', 'text', 'data']);

/** The media type of a part that names none. A file without one may be anything. */
const DEFAULT_TYPES: Readonly<Record<PartKind, string>> = {
  text: 'text/plain',
  data: 'application/json',
  file: '',
};

/** Most input modes that an error lists. */
const SHOWN_MODES = 10;

/** Throws the rule's refusal, naming the first part that the profile, or the agent, does not take. */
export function assertParts(rule: PartRule | undefined, message: Message | undefined, agent: Agent): void {
  if (!rule || !message) return;
  if (rule === 'input-modes') {
    assertInputModes(message, agent);
    return;
  }
  message.parts.forEach((part, index) => {
    const kind = kindOf(part);
    if (rule.always.includes(kind)) return;
    if (rule.filesIfDeclared && kind === 'file' && takesFile(agent.definition.inputModes, part)) return;
    throw refuseKind(rule, kind, `message.parts[${index}]`);
  });
}

/** The refusal of a part of a kind that is not taken. */
export function refuseKind(rule: KindRule, kind: string, path: string): ProtocolError {
  const shown = kind.slice(0, 32);
  const description = `a part of kind "${shown}" is not supported here: send ${rule.always.join(' or ')}`;
  return refusal(rule.refusal, path, description);
}

/** An agent that declares no input modes takes everything. */
function assertInputModes(message: Message, { definition }: Agent): void {
  if (definition.inputModes.length === 0) return;
  // A skill may take more than the agent does as a whole, and no message says which skill it is for.
  const modes = [...definition.inputModes, ...definition.skills.flatMap(({ inputModes }) => inputModes)];
  message.parts.forEach((part, index) => {
    if (takes(modes, part) || answersApproval(message, part)) return;
    const type = mediaTypeOf(part);
    const what = type === '' ? 'a file without a media type' : `the media type "${type.slice(0, 128)}"`;
    const known = [...new Set(modes)].slice(0, SHOWN_MODES).join(', ');
    const description = `${what} is not supported by this agent: send one of ${known}`;
    throw refusal('content-type-not-supported', `message.parts[${index}]`, description);
  });
}

function takes(modes: readonly string[], part: Part): boolean {
  const type = mediaTypeOf(part);
  if (type === '') return takesFile(modes, part);
  return modes.some((mode) => covers(mode, type) || essence(mode) === kindOf(part));
}

/** Whether the modes name the media type of a file, or, if it has none, any that only files have. */
function takesFile(modes: readonly string[], part: Part): boolean {
  const type = mediaTypeOf(part);
  return modes.some((mode) => !PLAIN_MODES.has(essence(mode)) && (type === '' || covers(mode, type)));
}

/** Whether a mode such as `image/*` includes the media type. */
function covers(mode: string, type: string): boolean {
  const wanted = essence(mode);
  return (
    wanted === '*/*' || wanted === '*' || wanted === type || wanted === `${type.split('/', 1)[0] ?? ''}/*`
  );
}

/**
 * The answer to a question for approval, as data. The platform reads it, not the agent, and it answers agents further
 * down as well.
 */
function answersApproval({ taskId }: Message, { content }: Part): boolean {
  if (taskId === '' || content?.$case !== 'data') return false;
  const value: unknown = content.value;
  return typeof value === 'object' && value !== null && 'approval' in value;
}

const mediaTypeOf = (part: Part): string => essence(part.mediaType) || DEFAULT_TYPES[kindOf(part)];

/** A media type without its parameters. */
const essence = (type: string): string => (type.split(';', 1)[0] ?? '').trim().toLowerCase();

function kindOf({ content }: Part): PartKind {
  return content?.$case === 'raw' || content?.$case === 'url' ? 'file' : (content?.$case ?? 'data');
}

const refusal = (kind: KindRule['refusal'], field: string, description: string): ProtocolError =>
  new ProtocolError(kind, `${field}: ${description}`, { violations: [{ field, description }] });
