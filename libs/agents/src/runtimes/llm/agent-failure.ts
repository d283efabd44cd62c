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

/** A model call exceeded a timeout of the agent's settings. */
export class ModelTimeout extends Error {
  constructor(
    readonly setting: 'timeout' | 'firstToken' | 'stall',
    readonly ms: number,
  ) {
    super(`${setting} of ${ms} ms`);
  }
}

/** The stream of an answer ended before the answer was complete. The message says more, or is empty. */
export class BrokenAnswer extends Error {}
