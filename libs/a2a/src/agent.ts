import type { AgentExtension, AgentSkill } from './model.js';
import type { RetryPolicy } from './retry-policy.js';

/**
 * An agent as the platform knows it: a row of a tenant's catalog, one installed by the operator for every
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
  /** Why it takes no messages; left out = it takes them. A deleted one stays for its tasks alone. */
  closed?: 'disabled' | 'deleted';
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
  /** False hides the agent from callers who may only reach enabled ones (`isEnabled`); left out = enabled. */
  a2aEnabled?: boolean;
  provider?: { organization: string; url: string };
  documentationUrl?: string;
  iconUrl?: string;
  /** Left out = restart, without a pause, as often as the environment says. */
  retry?: RetryPolicy;
}

/** Whether the agent answers where only enabled agents do. */
export const isEnabled = ({ definition, closed }: Agent): boolean =>
  closed === undefined && definition.a2aEnabled !== false;
