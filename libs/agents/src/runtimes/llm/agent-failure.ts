/** Why a turn of a model can't go on. The message is meant for the caller: plain words, no key, no stack. */
export class AgentFailure extends Error {
  override readonly name = 'AgentFailure';

  /** What it went over, as `baton_limit_exceeded_total` names it. */
  readonly limit: string | undefined;

  constructor(message: string, options?: ErrorOptions & { limit?: string }) {
    super(message, options);
    this.limit = options?.limit;
  }
}
