import type { Turn } from '@baton/agents';
import { createHash } from 'node:crypto';
import { v5 as uuid } from 'uuid';

/** The namespace of contexts that Baton derives. */
const CONTEXTS = '6f1c4f0a-3c39-4b1d-9a5e-8e2d7a0c5b17';

/** The child of a call: the same in every attempt, so that it is made once. */
export const childIdOf = ({ task }: Turn, callId: string): string => uuid(callId, task.id);

/** The message of a call, or with a person's answer to its child. */
export const messageIdOf = ({ task }: Turn, callId: string): string => uuid(`message ${callId}`, task.id);

/**
 * Where an agent talks with the one that asks it within a context: a context of its own, so that it remembers what
 * it was asked before and its words don't mix with the conversation of the one that asks. Of several calls at once
 * each has its own, or what one remembers of the others would be chance.
 */
export const contextOf = ({ task, agent }: Turn, agentId: string, lane: number): string =>
  uuid(`${agent.id} ${agentId} ${lane} ${task.contextId}`, CONTEXTS);

/** By what the answer that a call gives to a child is known when it comes again. */
export const answerKeyOf = ({ task }: Turn, callId: string): Buffer =>
  createHash('sha256').update(`child answer ${task.id} ${callId}`).digest();

/** By what a person's answer to the child of a call is known when it is handed on again. */
export const approvalKeyOf = (turn: Turn, callId: string, number: number): Buffer =>
  answerKeyOf(turn, `${callId} approval ${number}`);
