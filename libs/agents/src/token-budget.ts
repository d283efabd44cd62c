import type { CapQuestion } from './cap-reached.js';

/** Tokens of one model call. */
export interface TokenCount {
  inputTokens: number;
  outputTokens: number;
}

/** Tokens of one model call, as they are recorded. */
export interface SpentTokens extends TokenCount {
  /** `provider/model` */
  model: string;
  /** Input tokens that came from the provider's cache. */
  cachedInputTokens: number;
  /** Input tokens that the provider has written into its cache. Unset: none. */
  cacheWriteTokens?: number;
}

/** What a model call may use. */
export interface CallEstimate extends TokenCount {
  /** `provider/model` */
  model: string;
}

/** The budgets of tenants in tokens and money. The worker binds it to their limits and spending caps. */
export abstract class TokenBudget {
  /**
   * Reserves tokens and their cost for a model call. Reservations of earlier attempts of the run are released.
   * @param call estimated tokens of the call
   * @param forMs the reservation expires after this time
   * @param signal stops waiting for the reservation
   * @returns the reservation, for `record`; undefined: none is needed
   * @throws CapReached if a person may let the task continue over a spending cap; TokensExceeded if the tenant has no tokens left, or a spending cap has no room
   */
  abstract reserve(
    tenantId: string,
    runId: string,
    call: CallEstimate,
    forMs: number,
    signal: AbortSignal,
  ): Promise<string | undefined>;
  /**
   * Lets the task tree of a run spend more than a cap has room for, in its present period.
   * @param answer unique in the tenant: the same answer allows nothing a second time
   */
  abstract allow(
    tenantId: string,
    runId: string,
    question: Pick<CapQuestion, 'capId' | 'subject' | 'micros'>,
    answer: string,
    signal: AbortSignal,
  ): Promise<void>;
  /** Records the tokens and the cost of a call in place of its reservation. Never rejects. */
  abstract record(tenantId: string, runId: string, spent: SpentTokens, reservation?: string): Promise<void>;
}
