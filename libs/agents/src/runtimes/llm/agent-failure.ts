/** Ends a turn of an llm agent. The message is for the caller: plain words, no key, no stack. */
export class AgentFailure extends Error {
  override readonly name = 'AgentFailure';

  /** The exceeded limit, as a label of `baton_limit_exceeded_total`. */
  readonly limit: string | undefined;

  constructor(message: string, options?: ErrorOptions & { limit?: string }) {
    super(message, options);
    this.limit = options?.limit;
  }
}
