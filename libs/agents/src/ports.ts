import type { Agent, ListedAgent, Task } from '@baton/a2a';
import type { ApprovalAnswer } from './approvals.js';
import type { Turn } from './agent-runtime.js';

/** Lists the agents that a tenant can call. The worker binds it to the platform's catalog. */
export abstract class AgentList {
  /** Built-in agents, the tenant's own and installed ones. Never agents of another tenant. */
  abstract list(tenantId: string): Promise<ListedAgent[]>;
  /** One of these by slug or id, with its settings. It may be disabled. */
  abstract find(tenantId: string, slugOrId: string): Promise<Agent | undefined>;
}

/** Reads secrets of tenants, such as model keys. The worker binds it. */
export abstract class SecretReader {
  /**
   * The value, which must never be shown. Undefined if the tenant has no such secret. Rejects with an Error whose message
   * is for the tenant if one of the destinations may not receive it.
   * @param destinations every origin and program that will receive the value (`@baton/a2a`, secret-origins)
   */
  abstract get(tenantId: string, name: string, destinations: readonly string[]): Promise<string | undefined>;
}

/** The model with which the agent `index` routes. The worker binds it to the settings of operator and tenant. */
export abstract class IndexModels {
  /** Undefined if there is no model. `model` is `provider/model`, not yet validated. */
  abstract of(tenantId: string): Promise<IndexModel | undefined>;
}

export interface IndexModel {
  model: string;
  baseUrl?: string;
}

/** Tokens of one model call. */
export interface TokenCount {
  inputTokens: number;
  outputTokens: number;
}

/** Tokens of one model call, as they are recorded. */
export interface SpentTokens extends TokenCount {
  /** `provider/model` */
  model: string;
  /** Those of the input tokens that came from the provider's cache. */
  cachedInputTokens: number;
}

/** A tenant has exceeded its token limit. The message names the limit and the remedy. */
export class TokensExceeded extends Error {
  override readonly name = 'TokensExceeded';
}

/** The token budgets of tenants. The worker binds it to their limits. */
export abstract class TokenBudget {
  /**
   * Reserves tokens for a model call. An earlier reservation of the run is released.
   * @param tokens estimated tokens of the call
   * @param forMs the reservation expires after this time
   * @param signal stops waiting for the reservation
   * @throws TokensExceeded if the tenant has no tokens left
   */
  abstract reserve(
    tenantId: string,
    runId: string,
    tokens: number,
    forMs: number,
    signal: AbortSignal,
  ): Promise<void>;
  /** Records the tokens of a call in place of its reservation. Never rejects. */
  abstract record(tenantId: string, runId: string, spent: SpentTokens): Promise<void>;
}

/** A request of an agent to another agent during a turn. */
export interface ChildRequest {
  /** Unique in the task, and the same in every attempt, so that a repeated call has one child. */
  callId: string;
  /** Concurrent calls of one agent use different lanes, from 1. An agent remembers the earlier calls of a lane. */
  lane: number;
  agent: Agent;
  message: string;
  /** A JSON value in addition to the message. */
  data?: unknown;
  /** A child of the same task that asked for input. Default: a new child. */
  taskId?: string;
  /** Maximum depth of the child below the root task, and maximum number of tasks below the root task. */
  limits: { depth: number; tasks: number };
  /** What the child belongs to in the trace. Default: that of the turn. */
  traceparent?: string | undefined;
  signal: AbortSignal;
}

/** A task that an agent delegated to another agent. */
export interface ChildTask {
  task: Task;
  /** Depth below the root task: 1 = a child of it, 2 = a grandchild. */
  depth: number;
  /** Its turn has not ended. Wait for it with a `Suspension`. */
  isAtWork: boolean;
}

/** A person's answer to a child that waits for approval. */
export interface ChildAnswer extends ApprovalAnswer {
  /** The call that the child belongs to. */
  callId: string;
  agent: Agent;
  taskId: string;
  signal: AbortSignal;
}

/** A child was refused. The message is for the calling agent, in plain words. */
export class ChildRefusal extends Error {
  override readonly name = 'ChildRefusal';
}

/** Tasks that agents delegate to each other. The worker binds it. */
export abstract class ChildTasks {
  /**
   * Returns the child of a call, and creates it if there is none. It is durable when this resolves.
   * @throws ChildRefusal if a limit forbids it, if it was deleted, or if it waits for a person's answer and an agent
   * answers
   */
  abstract call(turn: Turn, request: ChildRequest): Promise<ChildTask>;

  /**
   * Forwards a person's answer about approvals to the child that asked, once. A child that no longer asks gets nothing.
   * Durable when it resolves.
   * @returns the child after that
   * @throws ChildRefusal if the child was deleted
   */
  abstract answer(turn: Turn, answer: ChildAnswer): Promise<ChildTask>;
}
