import type { Agent } from '../agent.js';
import { type OperationRules, SPEC_RULES } from '../call-context.js';
import type { Codec } from '../codecs/codec.js';
import { ProtocolError } from '../errors.js';
import type { ErrorOverrides } from '../json-rpc.js';
import { type ChooseAgent, agentOfPath } from './agent-choice.js';
import type { PartRule } from './request-rules.js';

/** Largest bodies by class, in bytes, unless the operator sets others. */
export const BODY_LIMITS = { standard: 16 * 1024 * 1024, small: 1024 * 1024 } as const;
export type BodyLimit = keyof typeof BODY_LIMITS;

/** What one system's clients rely on: a declaration that the one dispatcher and the operations look at. */
export interface Profile {
  readonly name: string;
  /** The JSON-RPC paths it is served at, with `:agent` where the agent stands. Profiles may share a path. */
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
  readonly bodyLimit: BodyLimit;
  /** Whether a request without an id is a notification, or refused (`assertEnvelopeId`). */
  readonly absentId: 'notification' | 'refused';
  /** Whether the `Accept` header must allow what the method answers with (`assertAccept`). */
  readonly accept: 'any' | 'by-method';
  /** Where the agent of a call comes from. */
  readonly chooseAgent: ChooseAgent;
  /** Whether agents with `a2aEnabled: false` are unknown here. */
  readonly onlyEnabledAgents: boolean;
  /** Kinds of parts a message may have; unset = whatever the agent takes (`assertParts`). */
  readonly parts?: PartRule;
  /** What operations do differently. */
  readonly rules: OperationRules;
  /** The profile's own card of an agent, where it is not the specification's. */
  readonly card?: ProfileCard;
}

/** A card as one system's clients look for it. */
export interface ProfileCard {
  path: string;
  /** @param publicUrl where this server is reached, or the origin of the bound host for a card at its root */
  encode(agent: Agent, publicUrl: string): Record<string, unknown>;
}

/** What a profile declares; all else is as the specification has it. */
export interface ProfileDeclaration extends Partial<
  Omit<Profile, 'codecFor' | 'methods' | 'resolveVersion' | 'rules' | 'name' | 'paths'>
> {
  name: string;
  paths: readonly string[];
  /** One for each protocol version; where two have a method of the same name the first is taken. */
  codecs: readonly Codec[];
  /** What `A2A-Version` may say, as `major.minor`. */
  versions: readonly string[];
  /** The spellings of a version that are taken; patch numbers don't matter unless this says so. */
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

/** The rules of a call: the codec's where it has its own, else the profile's. */
export const rulesFor = (profile: Profile, codec: Codec): OperationRules => ({
  ...profile.rules,
  ...codec.rules,
});

/** `1`, `1.0` and `1.0.3` are all version 1.0: patch numbers don't matter (A2A 1.0 §3.6). */
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

/** What the systems at the root path say of errors: Capsule's and Society's clients share it. */
export const ROOT_ERRORS: ErrorOverrides = {
  internal: { message: () => 'Internal error' },
  'agent-threw': { code: -32603, reason: 'INTERNAL_ERROR', message: () => 'Internal error' },
  'method-not-found': {
    message: ({ detail }) => `method not found: ${detail.metadata?.method ?? ''}`,
  },
};
