import { type Agent, isEnabled, type MaybeEnabled, type PushPolicy } from '../agent.js';
import { type OperationRules, SPEC_RULES } from '../operation-rules.js';
import type { Codec } from '../codecs/codec.js';
import { Fields } from '../codecs/fields.js';
import { ProtocolError } from '../protocol-error.js';
import type { Envelope, ErrorOverrides } from '../json-rpc.js';
import { essenceOf } from '../media-type.js';
import type { Message, Part } from '../model.js';
import { type OperationCall, requestedTaskId } from '../operation.js';

/** Largest bodies by class, in bytes, unless the operator sets others. */
export const BODY_LIMITS = { standard: 16 * 1024 * 1024, small: 1024 * 1024 } as const;
export type BodyClass = keyof typeof BODY_LIMITS;

/** What one system's clients rely on, as a declaration that the dispatcher and the operations read. */
export interface Profile {
  readonly name: string;
  /** The JSON-RPC paths it is served at, with `:agent` in place of the agent. Profiles may share a path. */
  readonly paths: readonly string[];
  /** Every JSON-RPC method it has. */
  readonly methods: readonly string[];
  /** The codec that has this JSON-RPC method, if any. */
  codecFor(method: string): Codec | undefined;
  /**
   * The version a request is served as, `major.minor`. `requested` is the `A2A-Version` header or query
   * parameter. Throws `version-not-supported` naming the supported ones.
   */
  resolveVersion(requested: string | undefined, method?: string): string;
  /** When the version is checked: right after the token, or when the envelope, and with it the id, is known. */
  readonly versionCheck: 'before-body' | 'after-envelope';
  /** Where its errors differ from the specification's. */
  readonly errors: ErrorOverrides;
  readonly bodyLimit: BodyClass;
  /** Whether a request without an id is a notification, or refused (`assertEnvelopeId`). */
  readonly absentId: 'notification' | 'refused';
  /** Whether the `Accept` header must allow what the method answers with (`assertAccept`). */
  readonly accept: 'any' | 'by-method';
  /** Where the agent of a call comes from. */
  readonly chooseAgent: ChooseAgent;
  /** Whether agents with `a2aEnabled: false` are unknown here. */
  readonly onlyEnabledAgents: boolean;
  /** What parts a message may have; unset = any (`assertParts`). */
  readonly parts?: PartRule;
  /** What operations do differently. */
  readonly rules: OperationRules;
  /** The profile's own card of an agent, where it is not the specification's. */
  readonly card?: ProfileCard;
}

/** The path and form of a card for one system's clients. */
export interface ProfileCard {
  path: string;
  /**
   * @param publicUrl where this server is reached, or the origin of the bound host for a card at its root
   * @param push which agents have push notifications; unset = those that declare them
   */
  encode(agent: Agent, publicUrl: string, push?: PushPolicy): Record<string, unknown>;
}

/** What a profile declares; all else is as the specification has it. */
export interface ProfileDeclaration extends Partial<
  Omit<Profile, 'codecFor' | 'methods' | 'resolveVersion' | 'rules' | 'name' | 'paths'>
> {
  name: string;
  paths: readonly string[];
  /** One for each protocol version; where two have a method of the same name the first is taken. */
  codecs: readonly Codec[];
  /** Accepted values of `A2A-Version`, as `major.minor`. */
  versions: readonly string[];
  /** The spellings of a version that are taken; patch numbers matter only if this is set. */
  spellings?: readonly string[];
  rules?: Partial<OperationRules>;
}

export function defineProfile(declaration: ProfileDeclaration): Profile {
  const { codecs, versions, spellings, rules, ...others } = declaration;
  const codecFor = (method: string): Codec | undefined => codecs.find((codec) => codec.hasMethod(method));
  const defaultVersion = codecs[0]?.version ?? '1.0';
  return {
    codecFor,
    methods: [...new Set(codecs.flatMap(({ methods }) => methods))],
    resolveVersion(requested = '', method = '') {
      const asked = requested.trim();
      if (asked === '') return codecFor(method)?.version ?? defaultVersion;
      const version = parseVersion(asked);
      const isSpelt = spellings === undefined || spellings.includes(asked);
      if (version !== undefined && isSpelt && versions.includes(version)) return version;
      throw versionNotSupported(requested, versions);
    },
    versionCheck: 'after-envelope',
    errors: {},
    bodyLimit: 'standard',
    absentId: 'notification',
    accept: 'any',
    chooseAgent: agentOfPath,
    onlyEnabledAgents: false,
    ...others,
    rules: { ...SPEC_RULES, ...rules },
  };
}

/** One path that takes JSON-RPC, with the profiles that share it. */
export interface RpcPath {
  path: string;
  profiles: readonly [Profile, ...Profile[]];
}

/**
 * The profile that serves a method at a path: the first that has the method, else the last. The last one also answers before the method is
 * known. Profiles that share a path must agree on everything that comes before the method: body limit, version check, `absentId`.
 */
export const profileFor = ({ profiles }: RpcPath, method?: string): Profile =>
  (method === undefined ? undefined : profiles.find((profile) => profile.codecFor(method))) ??
  profiles.at(-1) ??
  profiles[0];

/** The rules of a call: the codec's where it has its own, else the profile's. */
export const rulesFor = (profile: Profile, codec: Codec): OperationRules => ({
  ...profile.rules,
  ...codec.rules,
});

/** `1`, `1.0` and `1.0.3` are all version 1.0: patch numbers do not matter (A2A 1.0 §3.6). */
export function parseVersion(requested: string): string | undefined {
  const match = /^(\d{1,4})(?:\.(\d{1,4}))?(?:\.\d{1,9})?$/.exec(requested.trim());
  return match ? `${Number(match[1])}.${Number(match[2] ?? 0)}` : undefined;
}

export function versionNotSupported(requested: string, supported: readonly string[]): ProtocolError {
  const shown = requested.slice(0, 32);
  const list = supported.join(', ');
  return new ProtocolError(
    'version-not-supported',
    `A2A version "${shown}" is not supported: ask for one of ${list}, or leave A2A-Version out`,
    { metadata: { requestedVersion: shown, supportedVersions: list } },
  );
}

/** The form of errors of the systems at the root path: Capsule's and Society's clients share it. */
export const ROOT_ERRORS: ErrorOverrides = {
  internal: { message: () => 'Internal error' },
  'agent-threw': { code: -32603, reason: 'INTERNAL_ERROR', message: () => 'Internal error' },
  'method-not-found': {
    message: ({ detail }) => `method not found: ${detail.metadata?.method ?? ''}`,
  },
};

/** How the agent of a call is found in the caller's tenant. */
export type AgentChoice =
  /** By slug or id. */
  | { by: 'name'; name: string }
  /** The agent the host name is bound to, or else the tenant's default agent. */
  | { by: 'host' }
  /** The one that `soleAgent` finds. */
  | { by: 'sole' }
  /** The agent of the task that this id or alias names. */
  | { by: 'task'; taskId: string };

/** The facts of a call that are known before its agent is found. */
export interface AgentQuestion {
  /** The agent in the path, if the path has one. */
  path?: string;
  params: unknown;
  call: OperationCall;
}

/** Throws `invalid-params` where the params name an agent in a wrong way. */
export type ChooseAgent = (question: AgentQuestion) => AgentChoice;

export const agentOfPath: ChooseAgent = ({ path }) =>
  path === undefined ? { by: 'host' } : { by: 'name', name: path };

/**
 * The agent in the path; else the one the params' metadata names, by the first of `members`; else the agent of
 * the task the call is about; else the sole one (wire contract O-1).
 */
export const agentOfMetadata =
  (...members: readonly string[]): ChooseAgent =>
  ({ path, params, call }) => {
    if (path !== undefined) return { by: 'name', name: path };
    const metadata = Fields.ofParams(params).child('metadata');
    const name = members.map((member) => metadata?.string(member)).find((named) => named);
    if (name) return { by: 'name', name };
    const taskId = requestedTaskId(call);
    return taskId ? { by: 'task', taskId } : { by: 'sole' };
  };

/**
 * The agent a caller means who names none: the only enabled one of the tenant's own, or its default agent if
 * it has none of its own. Throws `invalid-params` if there is none or more than one.
 */
export function soleAgent<A extends MaybeEnabled>(own: readonly A[], defaultAgent: A | undefined): A {
  const enabled = own.filter(isEnabled);
  const [agent = defaultAgent, ...others] = enabled;
  if (agent && isEnabled(agent) && others.length === 0) return agent;
  const how = enabled.length > 1 ? `is required: there are ${enabled.length} agents` : 'names no agent';
  throw ProtocolError.invalidParams('metadata.agent', `${how}; send the slug or id of the agent you mean`);
}

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

/** Whether a caller asks for an event stream by name, and not for JSON as well. */
export function readsOnlyStreams(header: string | undefined): boolean {
  const ranges = (header ?? '').split(',').map(readRange);
  const names = (type: string): boolean => ranges.some(({ range, refused }) => range === type && !refused);
  return names('text/event-stream') && !names('application/json');
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

/** Maximum number of input modes that an error lists. */
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
  // A skill may take more than the agent does as a whole, and no message names its skill.
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
  return modes.some((mode) => covers(mode, type) || essenceOf(mode) === kindOf(part));
}

/** Whether the modes name the media type of a file, or, if it has none, any that only files have. */
function takesFile(modes: readonly string[], part: Part): boolean {
  const type = mediaTypeOf(part);
  return modes.some((mode) => !PLAIN_MODES.has(essenceOf(mode)) && (type === '' || covers(mode, type)));
}

/** Whether a mode such as `image/*` includes the media type. */
function covers(mode: string, type: string): boolean {
  const wanted = essenceOf(mode);
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

const mediaTypeOf = (part: Part): string => essenceOf(part.mediaType) || DEFAULT_TYPES[kindOf(part)];

function kindOf({ content }: Part): PartKind {
  return content?.$case === 'raw' || content?.$case === 'url' ? 'file' : (content?.$case ?? 'data');
}

const refusal = (kind: KindRule['refusal'], field: string, description: string): ProtocolError =>
  new ProtocolError(kind, `${field}: ${description}`, { violations: [{ field, description }] });
