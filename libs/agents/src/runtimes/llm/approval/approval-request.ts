import type { Message } from '@baton/a2a';
import { dataPart, textPart } from '../../../reply.js';

/** A call that a person must approve before it is made. */
export interface WaitingCall {
  /** Unlike the model's own id of it, no other call of the task has the same. */
  callId: string;
  tool: string;
  description: string;
  input: unknown;
}

const MAX_SHOWN = 2000;

/**
 * What the person who must approve calls is asked: a text that says it all, and a data part for each call, for
 * programs. The answer is such a part with `approved` in it, or plain text.
 * @param problem what was wrong with an answer before
 */
export function approvalRequest(calls: readonly WaitingCall[], problem?: string): Message['parts'] {
  const asked = calls.length === 1 ? 'This call needs' : `These ${calls.length} calls need`;
  const all = calls.length === 1 ? '' : ' to all of them, or about each with a data part';
  const lines = [
    ...(problem === undefined ? [] : [problem]),
    `${asked} your approval:`,
    ...calls.map(({ tool, input }) => `${tool} ${shown(input)}`),
    `Answer yes or no${all}.`,
  ];
  return [textPart(lines.join('\n')), ...calls.map((call) => dataPart({ approval: call }))];
}

function shown(input: unknown): string {
  const json = JSON.stringify(input, null, 2);
  return json.length <= MAX_SHOWN ? json : `${json.slice(0, MAX_SHOWN)}… (the data part has all of it)`;
}
