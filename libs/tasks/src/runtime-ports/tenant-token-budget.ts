import {
  CapReached,
  type CapQuestion,
  type CallEstimate,
  type SpentTokens,
  TokenBudget,
  TokensExceeded,
} from '@baton/agents';
import { Environment, microsOf, priceOf } from '@baton/config';
import { type RefusedReservation, retryTransient, TokenUsageStore } from '@baton/database';
import { LimitsService } from '@baton/identity';
import { Logger, Metrics } from '@baton/telemetry';
import { Inject, Injectable } from '@nestjs/common';
import { v4 as uuid, v5 as uuidOf } from 'uuid';
import { fullCapReason } from '../charges/full-cap-reason.js';

/** How long to retry saving the token usage of a model call. */
const RECORD_USAGE_MS = 5_000;

/** The model tokens of tenants: their limit `tokensPerDay` and their spending caps, over all workers. */
@Injectable()
export class TenantTokenBudget extends TokenBudget {
  /** The reservations of the calls that this process makes, by run. */
  private readonly taken = new Map<string, Set<string>>();

  constructor(
    private readonly store: TokenUsageStore,
    private readonly limits: LimitsService,
    @Inject(Environment)
    private readonly environment: Pick<Environment, 'modelPrices' | 'modelPricesCurrency'>,
    private readonly metrics: Metrics,
    private readonly logger: Logger,
  ) {
    super();
  }

  override async reserve(
    tenantId: string,
    runId: string,
    call: CallEstimate,
    forMs: number,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const [{ tokensPerDay: max }, isCapped] = await retryTransient(
      () => Promise.all([this.limits.get(tenantId), this.limits.hasSpendingCaps(tenantId)]),
      { signal },
    );
    const { inputTokens, outputTokens } = call;
    const cost = isCapped ? this.maxMicrosOf(call) : 0;
    if (max === null && cost === 0) return undefined;
    const slot = this.takeSlot(runId);
    const micros = cost > 0 ? cost : undefined;
    const reservation = { tenantId, runId, ...slot, tokens: inputTokens + outputTokens, forMs, max, micros };
    let isReserved = false;
    try {
      const refused = await retryTransient(() => this.store.reserve(reservation), { signal });
      if (refused) throw this.refusal(refused, max, cost);
      isReserved = true;
      return slot.id;
    } finally {
      if (!isReserved) this.freeSlot(runId, slot.id);
    }
  }

  override async allow(
    tenantId: string,
    runId: string,
    question: Pick<CapQuestion, 'capId' | 'subject' | 'micros'>,
    answer: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { capId, subject, micros } = question;
    await retryTransient(() => this.store.allow({ tenantId, runId, capId, subject, micros, answer }), {
      signal,
    });
  }

  /**
   * Save the usage of a call. Never rejects, because the call is over. If it cannot be saved, only the provider has counted it.
   */
  override async record(
    tenantId: string,
    runId: string,
    spent: SpentTokens,
    reservation?: string,
  ): Promise<void> {
    if (reservation !== undefined) this.freeSlot(runId, reservation);
    try {
      const record = async (): Promise<void> => {
        // Rows of a tenant that is being deleted would outlast it.
        if (await this.limits.isGone(tenantId)) return;
        const isCapped = await this.limits.hasSpendingCaps(tenantId);
        await this.store.record(tenantId, runId, spent, reservation, isCapped ? this.microsOf(spent) : 0);
      };
      await retryTransient(record, { signal: AbortSignal.timeout(RECORD_USAGE_MS) });
    } catch (error) {
      this.logger.warn('the token usage of a model call could not be saved', {
        err: error,
        tenantId,
        runId,
      });
    }
  }

  /** A model without a price costs nothing. */
  private microsOf({ model, cachedInputTokens: cachedTokens, ...tokens }: SpentTokens): number {
    const price = priceOf(model, this.environment.modelPrices);
    return price ? microsOf({ ...tokens, cachedTokens }, price) : 0;
  }

  /** The most that a call costs: nothing of its input is cached, or all of it is written into the cache. */
  private maxMicrosOf(call: CallEstimate): number {
    const costs = [0, call.inputTokens].map((cacheWriteTokens) =>
      this.microsOf({ ...call, cachedInputTokens: 0, cacheWriteTokens }),
    );
    return Math.max(...costs);
  }

  private refusal(refused: RefusedReservation, max: number | null, cost: number): TokensExceeded {
    const [cap] = refused.caps;
    this.metrics.limitExceeded.inc({ limit: refused.isOverTokens ? 'tokensPerDay' : 'spendingCap' });
    if (cap && !refused.isOverTokens) {
      const { modelPricesCurrency: currency } = this.environment;
      const { id: capId, of: subject, micros: amount, onLimit } = cap;
      const reason = fullCapReason(cap, cost, currency);
      if (onLimit === 'fail') return new TokensExceeded(reason);
      return new CapReached({ capId, subject, micros: amount, currency, reason });
    }
    return new TokensExceeded(
      `The limit tokensPerDay of this tenant, which is ${max}, has no room for another model call: try again ` +
        'tomorrow (UTC), or ask the operator for more.',
    );
  }

  /**
   * The id of the reservation of a call, one for each call that the run makes at the same time. Each attempt takes the same ids, so its
   * reservations replace those of the attempt before. The first call of an attempt releases all of them.
   */
  private takeSlot(runId: string): { id: string; replaces: string[] } {
    const taken = this.taken.get(runId) ?? new Set();
    const ids = slotsOf(runId);
    const id = ids.find((each) => !taken.has(each)) ?? uuid();
    const replaces = taken.size === 0 ? ids : [];
    this.taken.set(runId, taken.add(id));
    return { id, replaces };
  }

  private freeSlot(runId: string, id: string): void {
    const taken = this.taken.get(runId);
    taken?.delete(id);
    if (taken?.size === 0) this.taken.delete(runId);
  }
}

/** Number of concurrent calls of a run whose ids the next attempt can derive. Reservations of further calls expire. */
const SLOTS = Array.from({ length: 16 }, (_, i) => i);

/** The first is the id of the run, as in the last release. */
const slotsOf = (runId: string): string[] =>
  SLOTS.map((number) => (number === 0 ? runId : uuidOf(`reservation ${number}`, runId)));
