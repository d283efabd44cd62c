import { z } from 'zod';
import type { AgentExtension, AgentSkill, JsonObject } from './model.js';
import type { Scope } from './rights.js';

/**
 * An agent of the platform: a row of a tenant's catalog, one installed by the operator for every
 * tenant (`BATON_AGENTS_DIR`), or a built-in.
 */
export interface Agent {
  /** Catalog and installed agents: a uuid. Built-ins: their slug. Tasks refer to it. */
  id: string;
  slug: string;
  origin: 'catalog' | 'installed' | 'builtin';
  definition: AgentDefinition;
  /** Catalog agents only: which version of it this is, from 1. */
  version?: number;
  /** Catalog agents only: unset unless the agent has, or had, a version with the label `next`. */
  labels?: AgentLabels;
  /** For the agent of a run: the label with which its task began. */
  label?: AgentLabel;
  /** Installed agents only: hash of the code that a task must run, if it is pinned to it. Unset: the code that is there. */
  code?: string;
  /** Where that code is. Unset: in BATON_AGENTS_DIR. */
  folder?: string;
  /** Why the agent takes no messages; left out = it takes them. A deleted agent is kept for its tasks only. */
  status?: 'disabled' | 'deleted';
}

/** `stable` is the version that cards show. `next` has a share of new tasks. */
export type AgentLabel = 'next' | 'stable';

/** The labels of a catalog agent. */
export interface AgentLabels {
  /** The newest version of all. */
  newest: number;
  /** Unset: no version has the label. */
  next?: NextVersion;
  /** Why the last one lost its share by itself. Unset: it did not, or a user has promoted or withdrawn a version since. */
  ended?: EndedNext;
}

/** The version with the label `next`. */
export interface NextVersion {
  version: number;
  /** How many of 100 new tasks begin with it. */
  share: number;
  /** After how many failed runs it may lose its share by itself. */
  failures: number;
  since: Date;
  /** Unset where it is not needed, or no longer stored. */
  definition?: AgentDefinition;
}

/** How the runs went by which a version has lost the label `next`. */
export interface EndedNext {
  version: number;
  share: number;
  /** RFC 3339. */
  at: string;
  runs: number;
  failed: number;
  stableRuns: number;
  stableFailed: number;
}

/** What an author declares about an agent: the card's fields and the runtime that executes it. */
export interface AgentDefinition {
  name: string;
  description: string;
  version: string;
  /** A key of the runtime table (`echo`, `index`, `executor`). */
  runtime: string;
  /** Runtime-specific settings, validated by the runtime. */
  config: Record<string, unknown>;
  skills: AgentSkill[];
  inputModes: string[];
  outputModes: string[];
  extensions: AgentExtension[];
  /** Left out = the agent has no extended card. */
  extended?: ExtendedDefinition;
  /** Whether callers may ask for push notifications of its tasks; left out = the value of the environment. */
  pushNotifications?: boolean;
  /** False hides the agent from callers who may only reach enabled ones (`isEnabled`); left out = enabled. */
  a2aEnabled?: boolean;
  provider?: { organization: string; url: string };
  documentationUrl?: string;
  iconUrl?: string;
  /** Left out = restart, without a pause, with the number of restarts of the environment. */
  retry?: RetryPolicy;
  /** What a task of it costs besides model calls that Baton makes, in the currency of MODEL_PRICES. Spending caps count it. */
  price?: { perTask: string };
  /** When the webhooks are notified that a task of it waits for a person; left out = never again after its question. */
  reminders?: { remindAfterHours?: number; escalateAfterHours?: number };
  /** Which version a task runs that has begun with an earlier one; left out = the latest. */
  versions?: VersionPolicy;
  /** How long a repeated message joins its task, in hours; 0 = never; left out = the value of the environment. */
  idempotencyHours?: number;
}

/** `latest`: a task that has begun continues with the newest version of its agent. `pinned`: with the one with which it began. */
export const VERSION_POLICIES = ['latest', 'pinned'] as const;
export type VersionPolicy = (typeof VERSION_POLICIES)[number];

/** The fields that decide whether an agent takes messages. */
export interface MaybeEnabled extends Pick<Agent, 'status'> {
  definition: Pick<AgentDefinition, 'a2aEnabled'>;
}

/** Which agents have push notifications: none, those that declare them, or all that do not decline them. */
export type PushPolicy = 'off' | 'declared' | 'all';

/** Whether callers may ask for push notifications of the tasks of an agent. */
export const hasPush = (
  { definition }: { definition: Pick<AgentDefinition, 'pushNotifications'> },
  mode: PushPolicy,
): boolean => mode !== 'off' && (definition.pushNotifications ?? mode === 'all');

/** What the extended card of an agent has besides its card (A2A 1.0 §3.1.11). */
export interface ExtendedDefinition {
  /** A token needs one of these; left out = every token that may read the card. */
  scopes?: Scope[];
  description?: string;
  documentationUrl?: string;
  /** Besides those of the card. One with the same id replaces it. */
  skills: AgentSkill[];
}

/** An agent as far as others choose by it, without its settings. */
export interface ListedAgent extends Omit<Agent, 'definition'> {
  definition: Pick<AgentDefinition, 'name' | 'description' | 'skills' | 'a2aEnabled'> & {
    /** See `outputSchemaOf`. */
    outputSchema?: JsonObject;
  };
}

/** Whether the agent answers where only enabled agents do. */
export const isEnabled = ({ definition, status }: MaybeEnabled): boolean =>
  status === undefined && definition.a2aEnabled !== false;

/**
 * What becomes of a run whose worker died or lost its lease: `restart` runs the turn again from its message, `none`
 * fails the task. An agent that throws is not retried: its task fails at once.
 */
export interface RetryPolicy {
  mode: 'restart' | 'none';
  /** How often the run is tried before its task fails, 1 to 10; left out = the value of the environment. */
  attempts?: number;
  /** Pause before each new attempt; left out = none. */
  backoff?: RetryBackoff;
}

/** The pause before the first new attempt, how much longer each one after it is, and the longest, in ms. */
interface RetryBackoff {
  initialMs: number;
  factor: number;
  maxMs: number;
}

/** The policy of one run, fixed when it is accepted. */
export interface RunRetry {
  maxAttempts: number;
  backoff: RetryBackoff;
}

const DAY_MS = 86_400_000;
/** Maximum number of attempts that an agent may ask for: each may crash a worker. */
const MAX_RETRY_ATTEMPTS = 10;
const ATTEMPTS = `must be a whole number from 1 to ${MAX_RETRY_ATTEMPTS}`;
const NO_BACKOFF: RetryBackoff = { initialMs: 0, factor: 1, maxMs: 0 };

const backoff = z.strictObject({
  initialMs: z.int().min(1).max(DAY_MS),
  factor: z.number().min(1).max(100).default(2),
  maxMs: z.int().min(1).max(DAY_MS).default(60_000),
});

/** `retry` of an agent's definition. */
export const retryPolicy = z.discriminatedUnion('mode', [
  z.strictObject({ mode: z.literal('none') }),
  z.strictObject({
    mode: z.literal('restart'),
    attempts: z.int(ATTEMPTS).min(1, ATTEMPTS).max(MAX_RETRY_ATTEMPTS, ATTEMPTS).optional(),
    backoff: backoff.optional(),
  }),
]);

/** A policy that was stored when more attempts were allowed, within what is allowed now. */
export function clampRetry(policy: RetryPolicy): RetryPolicy {
  const { attempts } = policy;
  return attempts === undefined ? policy : { ...policy, attempts: Math.min(attempts, MAX_RETRY_ATTEMPTS) };
}

/**
 * The policy for a run of an agent that declares this one.
 * @param defaultAttempts for an agent without the setting
 */
export function runRetry(policy: RetryPolicy | undefined, defaultAttempts: number): RunRetry {
  if (policy?.mode === 'none') return { maxAttempts: 1, backoff: NO_BACKOFF };
  const { attempts = defaultAttempts, backoff: pause = NO_BACKOFF } = policy ? clampRetry(policy) : {};
  return { maxAttempts: attempts, backoff: pause };
}
