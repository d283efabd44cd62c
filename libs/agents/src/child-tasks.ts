import type { Agent, Task } from '@baton/a2a';
import type { ApprovalAnswer } from './approvals.js';
import type { Turn } from './runtime.js';

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
