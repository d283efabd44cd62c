import type { Turn } from '@baton/agents';
import { createHash } from 'node:crypto';
import { v5 as uuid } from 'uuid';

/** UUID namespace of the contexts that Baton derives. A random UUID: it must never change. */
const CONTEXTS = '6f1c4f0a-3c39-4b1d-9a5e-8e2d7a0c5b17';

/** Id of the message that a call sends to its child. The message with a person's answer has one as well. */
export const childMessageId = ({ task }: Turn, callId: string): string => uuid(`message ${callId}`, task.id);

/**
 * The context in which an agent answers another agent. It is separate, so that the agent can read earlier calls
 * and its answers stay out of the asking agent's conversation. Concurrent calls have separate contexts: in a shared one, the order
 * of the calls would depend on chance.
 * @param lane number of the call among concurrent calls of the agent, from 1
 */
export const childContextId = ({ task, agent }: Turn, agentId: string, lane: number): string =>
  uuid(`${agent.id} ${agentId} ${lane} ${task.contextId}`, CONTEXTS);

/** The key of a call's answer to a child, so that a repeated answer is recognised. */
export const childAnswerKey = ({ task }: Turn, callId: string): Buffer =>
  createHash('sha256').update(`child answer ${task.id} ${callId}`).digest();

/** The key of a person's answer to the child of a call, so that a repeated answer is recognised. */
export const childApprovalKey = (turn: Turn, callId: string, approvalNumber: number): Buffer =>
  childAnswerKey(turn, `${callId} approval ${approvalNumber}`);
