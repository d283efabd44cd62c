import { textOf } from '@baton/a2a';
import type { AgentOutput, Turn } from '../../agent-runtime.js';
import type { TurnRequest } from './protocol.js';

/** A call of a function, as the process of its agent gets it. */
export interface FunctionCall {
  tool: string;
  /** JSON value of the tool's schema. */
  input: unknown;
  /** Effect key of the call. */
  key: string;
  /** Checks an earlier call in place of a new one: `verify` of the function reads the outcome. The result is a `Verified`. */
  verifies?: true;
}

/** The request of a turn in which the process of an agent executes one function. Its message is the JSON of the call. */
export function callRequest({ tenantId, task }: Turn, call: FunctionCall): TurnRequest {
  const { id: taskId, contextId } = task;
  const parts = [{ text: JSON.stringify(call) }];
  const message = { messageId: call.key, taskId, contextId, role: 'ROLE_USER', parts };
  return { tenantId, taskId, contextId, message, extensions: [] };
}

/** The JSON value that a function has returned. Undefined if the output is no message. @throws SyntaxError if it is no JSON */
export function callResult(output: AgentOutput): unknown {
  if (output.$case !== 'message') return undefined;
  // oxlint-disable-next-line no-restricted-properties -- the process limits its size
  return JSON.parse(textOf(output.value.parts)) as unknown;
}
