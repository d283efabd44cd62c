import { type Agent, isEnabled } from '../agent.js';
import { Fields } from '../codecs/fields.js';
import { ProtocolError } from '../errors.js';
import { type OperationCall, requestedTaskId } from '../operation.js';

/** How the agent of a call is found in the caller's tenant. */
export type AgentChoice =
  /** By slug or id. */
  | { by: 'name'; name: string }
  /** The agent the host name is bound to, or else the tenant's default agent. */
  | { by: 'host' }
  /** The one that `soleAgent` finds. */
  | { by: 'sole' }
  /** The agent of the task that this id or alias names. */
  | { by: 'task'; taskId: string };

/** What is known of a call when its agent is looked for. */
export interface AgentQuestion {
  /** The agent in the path, if the path has one. */
  path?: string;
  params: unknown;
  call: OperationCall;
}

/** Throws `invalid-params` where the params name an agent in a wrong way. */
export type ChooseAgent = (question: AgentQuestion) => AgentChoice;

export const agentOfPath: ChooseAgent = ({ path }) =>
  path === undefined ? { by: 'host' } : { by: 'name', name: path };

/**
 * The agent in the path; else the one the params' metadata names, by the first of `members`; else the agent of
 * the task the call is about; else the sole one (wire contract O-1).
 */
export const agentOfMetadata =
  (...members: readonly string[]): ChooseAgent =>
  ({ path, params, call }) => {
    if (path !== undefined) return { by: 'name', name: path };
    const metadata = Fields.ofParams(params).child('metadata');
    const name = members.map((member) => metadata?.string(member)).find((named) => named);
    if (name) return { by: 'name', name };
    const taskId = requestedTaskId(call);
    return taskId ? { by: 'task', taskId } : { by: 'sole' };
  };

/**
 * The agent a caller means who names none: the only enabled one of the tenant's own, or its default agent if
 * it has none of its own. Throws `invalid-params` if there is none or more than one.
 */
export function soleAgent(own: readonly Agent[], defaultAgent: Agent | undefined): Agent {
  const enabled = own.filter(isEnabled);
  const [agent = defaultAgent, ...others] = enabled;
  if (agent && isEnabled(agent) && others.length === 0) return agent;
  const how = enabled.length > 1 ? `is required: there are ${enabled.length} agents` : 'names no agent';
  throw ProtocolError.invalidParams('metadata.agent', `${how}; send the slug or id of the agent you mean`);
}
