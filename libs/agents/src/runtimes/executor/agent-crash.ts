import { type AgentErrorDetail } from './protocol.js';

/** The agent's process died during this turn. Callers may see the message. */
export class AgentCrash extends Error {
  override readonly name = 'AgentCrash';

  constructor(
    message: string,
    /** Details for the agent's author. */
    readonly detail: AgentErrorDetail,
    /** Other turns ran in the same process, and any of them may have killed it. The next attempt should run alone. */
    readonly hadCompany: boolean,
  ) {
    super(message);
  }
}
