import type { Agent, Task } from '@baton/a2a';
import type { ApprovalAnswer } from './approvals.js';
import type { Turn } from './agent-runtime.js';

/** A request of an agent to another agent during a turn. */
export interface ChildRequest {
  /** Unique in the task, and the same in every attempt, so that a repeated call has one child. */
  callId: string;
  /** Concurrent calls of one agent use different lanes, from 1. An agent gets the earlier calls of its lane as history. */
  lane: number;
  agent: Agent;
  message: string;
  /** A JSON value in addition to the message. */
  data?: unknown;
  /** A child of the same task that asked for input. Default: a new child. */
  taskId?: string;
  /** Maximum depth of the child below the root task, and maximum number of tasks below the root task. */
  limits: { depth: number; tasks: number };
  /** Parent span of the child. Default: the span of the turn. */
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
