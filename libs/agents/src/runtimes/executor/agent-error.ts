import { type AgentErrorDetail } from './protocol.js';

/** The agent's code failed in this turn. Callers must not see the message: it is the agent's own. */
export class AgentError extends Error {
  override readonly name = 'AgentError';

  constructor(readonly detail: AgentErrorDetail) {
    super(detail.message);
  }
}
