import type { Turn } from '@baton/agents';
import { createHash } from 'node:crypto';
import { v5 as uuid } from 'uuid';

/** The namespace of contexts that Baton derives. */
const CONTEXTS = '6f1c4f0a-3c39-4b1d-9a5e-8e2d7a0c5b17';

/** The child of a call: the same in every attempt, so that it is made once. */
export const childIdOf = ({ runId }: Turn, callId: string): string => uuid(callId, runId);

/** The message of a call. */
export const messageIdOf = ({ runId }: Turn, callId: string): string => uuid(`message ${callId}`, runId);

/**
 * Where an agent talks with those that ask it within a context: a context of its own, so that it remembers what it
 * was asked before and its words don't mix with the conversation of the one that asks.
 */
export const contextOf = ({ task }: Turn, agentId: string): string =>
  uuid(`${agentId} ${task.contextId}`, CONTEXTS);

/** By what the answer that a call gives to a child is known when it comes again. */
export const answerKeyOf = ({ runId }: Turn, callId: string): Buffer =>
  createHash('sha256').update(`child answer ${runId} ${callId}`).digest();
