/** Tokens of one call of a model. */
export interface TokenCount {
  inputTokens: number;
  outputTokens: number;
}

/** A tenant is over what it may use: the sentence says which limit, and what to do. */
export class TokensExceeded extends Error {
  override readonly name = 'TokensExceeded';
}

/** What tenants spend on models. Bound to their limits by the process that runs agents. */
export abstract class TokenBudget {
  /**
   * Take room for a call of a model before it is made; what a run had taken before is given back.
   * @param tokens what it may cost, by estimate
   * @param forMs after this time the room is free again, whatever became of the call
   * @param signal stops waiting for an answer
   * @throws TokensExceeded if the tenant has no room left
   */
  abstract reserve(
    tenantId: string,
    runId: string,
    tokens: number,
    forMs: number,
    signal: AbortSignal,
  ): Promise<void>;
  /** Note what the call has cost, in place of what was reserved for it. Does not reject. */
  abstract record(tenantId: string, runId: string, spent: TokenCount): Promise<void>;
}
