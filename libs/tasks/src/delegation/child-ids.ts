import type { Turn } from '@baton/agents';
import { createHash } from 'node:crypto';
import { v5 as uuid } from 'uuid';

/** The namespace of contexts that Baton derives. */
const CONTEXTS = '6f1c4f0a-3c39-4b1d-9a5e-8e2d7a0c5b17';

/** The message of a call, or with a person's answer to its child. */
export const messageIdOf = ({ task }: Turn, callId: string): string => uuid(`message ${callId}`, task.id);

/**
 * The context in which an agent answers another agent. It is separate, so that the agent remembers earlier questions
 * and its answers stay out of the asking agent's conversation. Concurrent calls have separate contexts; otherwise it
 * would be chance what one remembers of the others.
 */
export const contextOf = ({ task, agent }: Turn, agentId: string, lane: number): string =>
  uuid(`${agent.id} ${agentId} ${lane} ${task.contextId}`, CONTEXTS);

/** The key of a call's answer to a child, so that a repeated answer is recognised. */
export const answerKeyOf = ({ task }: Turn, callId: string): Buffer =>
  createHash('sha256').update(`child answer ${task.id} ${callId}`).digest();

/** The key of a person's answer to the child of a call, so that a repeated answer is recognised. */
export const approvalKeyOf = (turn: Turn, callId: string, number: number): Buffer =>
  answerKeyOf(turn, `${callId} approval ${number}`);
