import type { Agent, AgentLabel } from './agent.js';
import type { AgentCard } from './model.js';
import type { SubjectToken } from './subject-token.js';
import type { AllowedAgents, Principal, Scope } from './rights.js';

/** Memory of this process for what a call reads of large tasks; the call has it until its answer has left. */
export interface ReadMemory {
  /**
   * Take this many bytes of JSON. May wait.
   * @returns whether they were granted; if not, the call answers with what it has
   * @throws ProtocolError `unavailable` where the call has nothing to answer with
   */
  take(bytes: number): Promise<boolean>;
  /** Gives back bytes that were taken last and are not needed. */
  giveBack(bytes: number): void;
  /** Resolves when this many bytes of JSON may be parsed. The caller must begin at once. Large work of one caller leaves time to others. */
  turn(bytes: number): Promise<void>;
}

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

/**
 * What operations do differently for a profile, as data. They read these rules and never a profile's
 * name, so a further profile changes nothing in them.
 */
export interface OperationRules {
  /** Whether a send answers with an agent's bare message as such, or always with the task. */
  reply: 'task-or-message' | 'task';
  /** How a blocking send answers if the agent threw: with the error, or the failed task. */
  agentThrew: 'error' | 'failed-task';
  /** Whether a blocking send waits until the turn ends, or only as long as the operator lets it (the run is not stopped). */
  wait: 'for-the-turn' | 'limited';
  /** Whether the stream of a send lasts until the turn ends, or only as long as the operator lets it. */
  streamWait: 'for-the-turn' | 'limited';
  /** Whether a message answers a task that waits for approval. */
  approvals: 'by-message' | 'refused';
  /** Whether get, cancel and subscribe find the tasks of the call's agent, or any task of the tenant. */
  taskScope: 'agent' | 'tenant';
  /** Set where callers choose the ids of their tasks: sends, gets and cancels read an id as an alias first. */
  clientTaskIds?: ClientTaskIdRule;
  /** What canceling a canceled task does. */
  cancelAgain: 'refused' | 'returns-it';
  /** Whether the metadata of a cancel is kept on the task. */
  cancelMetadata: 'ignored' | 'kept';
  /**
   * What a subscription begins with: the task as it is now; or the whole log from event 1, and for a task that
   * has ended its Task as the only item. A replay leaves out interruptions that lie in the past.
   */
  subscribe: 'snapshot' | 'replay';
  /** Which states end a stream: those that end the turn, or only terminal ones. */
  streamEnds: 'with-turn' | 'with-task';
  /** Whether get and subscribe read the artifacts of a task. `left-out`: its status is enough, and a task may be large. */
  artifacts: 'read' | 'left-out';
  /** Whether a task's history begins with the earlier tasks of its context (`conversationHistory`). */
  history: 'task' | 'conversation';
  /** How an extended card is refused that the agent's card does not declare. */
  extendedCard: 'unsupported-operation' | 'extended-card-not-configured';
  /** Whether agents have push notifications. */
  push: 'as-declared' | 'refused';
  /** What a push notification config and its members are called. */
  pushFields: PushFields;
}

/** Where the version of a call has the members of a push notification config, as errors name them. */
export interface PushFields {
  /** The config in the params of its own operation; empty = the params are the config. */
  config: string;
  /** The config in the params of a send. */
  inSend: string;
  /** The scheme in `authentication`. */
  scheme: string;
}

/** How a send to an id that the caller has used before is understood (`turnOfAlias`). */
export interface ClientTaskIdRule {
  /** Whether a message equal to the last one joins a task that has ended, or only one that is at work. */
  joins: 'any-task' | 'working-task';
  /** Whether a canceled task is refused, or followed by a new turn like any other that has ended. */
  canceled: 'refused' | 'new-turn';
}

/** The specification's own rules; a profile names only what differs. */
export const SPEC_RULES: OperationRules = {
  reply: 'task-or-message',
  agentThrew: 'error',
  wait: 'for-the-turn',
  streamWait: 'for-the-turn',
  approvals: 'by-message',
  taskScope: 'agent',
  cancelAgain: 'refused',
  cancelMetadata: 'ignored',
  subscribe: 'snapshot',
  streamEnds: 'with-turn',
  artifacts: 'read',
  history: 'task',
  extendedCard: 'unsupported-operation',
  push: 'as-declared',
  pushFields: { config: '', inSend: 'configuration.taskPushNotificationConfig', scheme: 'scheme' },
};
