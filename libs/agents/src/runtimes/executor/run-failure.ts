import type { ErrorDetail } from './protocol.js';

export type { ErrorDetail };

/** The code of an agent has failed, in this turn. The message is the agent's own and not meant for callers. */
export class AgentError extends Error {
  override readonly name = 'AgentError';

  constructor(readonly detail: ErrorDetail) {
    super(detail.message);
  }
}

/** The process of an agent has died with this turn in it. The message can be shown to callers. */
export class AgentCrash extends Error {
  override readonly name = 'AgentCrash';

  constructor(
    message: string,
    /** What is known of it, for the agent's author. */
    readonly detail: ErrorDetail,
    /** Other turns were in the process, and any of them may have killed it: it should run alone next time. */
    readonly hadCompany: boolean,
  ) {
    super(message);
  }
}
