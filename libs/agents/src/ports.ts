import type { Agent, Task } from '@baton/a2a';
import type { ApprovalAnswer } from './approvals.js';
import type { Turn } from './runtime.js';

/** The agents a tenant can call. Bound to the platform's catalog by the process that runs agents. */
export abstract class AgentList {
  /** Built-ins, the tenant's own and the installed ones; never another tenant's. */
  abstract list(tenantId: string): Promise<Agent[]>;
}

/** Reads the secrets of tenants: model keys, credentials. Bound by the process that runs agents. */
export abstract class SecretReader {
  /** The value, for use and never for showing; undefined if the tenant has no such secret. */
  abstract get(tenantId: string, name: string): Promise<string | undefined>;
}

/** With which model the agent `index` routes. Bound to the settings of operator and tenant by the process that runs agents. */
export abstract class IndexModels {
  /** Undefined: it has none. `model` is `provider/model` as somebody has written it. */
  abstract of(tenantId: string): Promise<IndexModel | undefined>;
}

export interface IndexModel {
  model: string;
  baseUrl?: string;
}

/** Tokens of one call of a model. */
export interface TokenCount {
  inputTokens: number;
  outputTokens: number;
}

/** A tenant is over what it may use: the sentence says which limit, and what to do. */
export class TokensExceeded extends Error {
  override readonly name = 'TokensExceeded';
}

/** What tenants spend on models. Bound to their limits by the process that runs agents. */
export abstract class TokenBudget {
  /**
   * Take room for a call of a model before it is made; what a run had taken before is given back.
   * @param tokens what it may cost, by estimate
   * @param forMs after this time the room is free again, whatever became of the call
   * @param signal stops waiting for an answer
   * @throws TokensExceeded if the tenant has no room left
   */
  abstract reserve(
    tenantId: string,
    runId: string,
    tokens: number,
    forMs: number,
    signal: AbortSignal,
  ): Promise<void>;
  /** Note what the call has cost, in place of what was reserved for it. Does not reject. */
  abstract record(tenantId: string, runId: string, spent: TokenCount): Promise<void>;
}

/** What an agent asks another one while it answers a turn. */
export interface ChildRequest {
  /** Unique in the task, and the same in every attempt: a call has one child, however often it is made. */
  callId: string;
  /**
   * Who is asked several times at once is asked in different lanes, from 1: an agent remembers what it was asked
   * before in a lane.
   */
  lane: number;
  agent: Agent;
  message: string;
  /** A JSON value that goes with the message. */
  data?: unknown;
  /** A child of the same task that has asked for input; left out = a new one. */
  taskId?: string;
  /** The child may be so far from the first task of all, and so many may be made below that one. */
  limits: { depth: number; tasks: number };
  signal: AbortSignal;
}

/** A task that an agent has given to another one. */
export interface ChildTask {
  task: Task;
  /** 1 = of the first task of all, 2 = of a child of it … */
  depth: number;
  /** Its turn has not ended: wait for it with a `Suspension`. */
  isAtWork: boolean;
}

/** A person's answer for a child that waits for approval. */
export interface ChildAnswer extends ApprovalAnswer {
  /** The call that the child belongs to. */
  callId: string;
  agent: Agent;
  taskId: string;
  signal: AbortSignal;
}

/** Why there is no such child. The message is plain words for the agent that asks. */
export class ChildRefusal extends Error {
  override readonly name = 'ChildRefusal';
}

/** Tasks of the same platform that agents give to each other. Bound by the process that runs agents. */
export abstract class ChildTasks {
  /**
   * The child of a call: started if there is none yet, else as it is. Durable when it resolves.
   * @throws ChildRefusal if it may not be, is no longer kept, or waits for a person's answer and gets an agent's
   */
  abstract call(turn: Turn, request: ChildRequest): Promise<ChildTask>;

  /**
   * Hand a person's answer about approvals on to the child that has asked, once; a child that no longer asks for them
   * gets nothing. Durable when it resolves.
   * @returns the child as it is then
   * @throws ChildRefusal if it is no longer kept
   */
  abstract answer(turn: Turn, answer: ChildAnswer): Promise<ChildTask>;
}
