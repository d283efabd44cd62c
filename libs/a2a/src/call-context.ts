import type { Agent } from './agent.js';
import type { OperationRules } from './operation-rules.js';

/** What a tenant may want to do itself; a token has all of these unless its maker names some. */
export const TENANT_SCOPES = [
  'agents:call',
  'tasks:read',
  'agents:read',
  'agents:write',
  'secrets:write',
  'schedules:write',
] as const;
export const SCOPES = [...TENANT_SCOPES, 'admin'] as const;
/** What a token may do. `admin` includes all others. */
export type Scope = (typeof SCOPES)[number];

/** Memory of this process for what a call reads of large tasks; the call has it until its answer has left. */
export interface ReadMemory {
  /**
   * Take so many bytes of JSON, perhaps after a while.
   * @returns whether they were granted; if not, the call answers with what it has
   * @throws ProtocolError `unavailable` where the call has nothing to answer with
   */
  take(bytes: number): Promise<boolean>;
}

/** Who calls, with what rights, about which agent. Passed explicitly everywhere, never ambient. */
export interface CallContext {
  tenantId: string;
  tokenId: string;
  scopes: readonly Scope[];
  requestId: string;
  /** The agent the path names, resolved in the caller's tenant. */
  agent: Agent;
  /** The profile of the path (`spec`, …). */
  profile: string;
  /** What operations do differently for the profile and the family of the method (`rulesFor`). */
  rules: OperationRules;
  /** The id the caller has chosen for the task it sends a message to (0.1 family). */
  clientTaskId?: string;
  /** The protocol version asked for, as `major.minor`. */
  version: string;
  /** URIs of the `A2A-Extensions` header. */
  extensions: readonly string[];
  traceparent?: string;
  /** What the `Idempotency-Key` header of a send says. */
  idempotencyKey?: string;
  /** `Last-Event-ID` of a resubscribe: the sequence after which to go on. */
  lastEventId?: number;
  /** Unset: what the call reads is bounded for itself alone. */
  memory?: ReadMemory;
}
