/** Tokens of one model call. */
export interface TokenCount {
  inputTokens: number;
  outputTokens: number;
}

/** Tokens of one model call, as they are recorded. */
export interface SpentTokens extends TokenCount {
  /** `provider/model` */
  model: string;
  /** Those of the input tokens that came from the provider's cache. */
  cachedInputTokens: number;
}

/** The token budgets of tenants. The worker binds it to their limits. */
export abstract class TokenBudget {
  /**
   * Reserves tokens for a model call. An earlier reservation of the run is released.
   * @param tokens estimated tokens of the call
   * @param forMs the reservation expires after this time
   * @param signal stops waiting for the reservation
   * @throws TokensExceeded if the tenant has no tokens left
   */
  abstract reserve(
    tenantId: string,
    runId: string,
    tokens: number,
    forMs: number,
    signal: AbortSignal,
  ): Promise<void>;
  /** Records the tokens of a call in place of its reservation. Never rejects. */
  abstract record(tenantId: string, runId: string, spent: SpentTokens): Promise<void>;
}
