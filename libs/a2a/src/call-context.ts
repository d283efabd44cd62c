import type { Agent, AgentLabel } from './agent.js';
import type { AgentCard } from './model.js';
import type { SubjectToken } from './subject-token.js';
import type { AllowedAgents, Principal, Scope } from './rights.js';
import type { OperationRules } from './operation-rules.js';
import type { ReadMemory } from './read-memory.js';

/** Who calls, with what rights, about which agent. Passed explicitly everywhere, never ambient. */
export interface CallContext {
  tenantId: string;
  principal: Principal;
  /** The entry of the issuer that vouches for the principal, if it is a user of one. */
  issuerId?: string | undefined;
  /** The token of a user who sends a message. Unset: the caller is not a user, or the call does not send. */
  subject?: SubjectToken | undefined;
  scopes: readonly Scope[];
  /** The agents that exist for the caller; unset = all of its tenant. */
  agents?: AllowedAgents | undefined;
  /** Whether the operation reads tasks or acts on them (`OPERATIONS`); see `rights.ts`. */
  access: 'read' | 'write';
  requestId: string;
  /** IP address of the caller, for the audit log. */
  address?: string;
  /** The agent the path names, resolved in the caller's tenant. */
  agent: Agent;
  /** The profile of the path (`spec`, …). */
  profile: string;
  /** What operations do differently for the profile and the codec of the method (`rulesFor`). */
  rules: OperationRules;
  /** The id the caller has chosen for the task it sends a message to (A2A 0.1). */
  clientTaskId?: string;
  /** The protocol version asked for, as `major.minor`. */
  version: string;
  /** URIs of the `A2A-Extensions` header. */
  extensions: readonly string[];
  traceparent?: string;
  /** Label of the version with which a new task begins, of the `Baton-Agent-Label` header. Unset: the shares decide. */
  label?: AgentLabel;
  /** The value of the `Idempotency-Key` header of a send. */
  idempotencyKey?: string;
  /** `Last-Event-ID` of a resubscribe: the sequence after which to continue. */
  lastEventId?: number;
  /** The card of an agent with the URLs at which the caller reaches it, signed if a key is configured. */
  buildCard?: (agent: Agent) => Promise<AgentCard>;
  /** Unset: what the call reads is bounded for itself alone. */
  memory?: ReadMemory;
  /** Called when the message of a send is stored. Its memory is free then, and the call may continue for hours. */
  onStored?: () => void;
}
