import { type Agent, USAGE } from '@baton/a2a';
import { Environment, microsOf, parseMicros, priceOf } from '@baton/config';
import { type RunKey, retryTransient, type SpendingCharge, SpendingChargeStore } from '@baton/database';
import { LimitsService } from '@baton/identity';
import { Logger } from '@baton/telemetry';
import { Inject, Injectable } from '@nestjs/common';
import { z } from 'zod';
import { TurnFailure } from '../core/turn-failure.js';
import { fullCapReason } from './full-cap-reason.js';

/** How long to retry saving what an agent has reported. */
const REPORT_MS = 5_000;

const tokens = z.int().min(0).max(1_000_000_000_000);
/** `baton.usage` of an agent. It can write anything there. */
const reportedUsage = z.object({
  inputTokens: tokens.catch(0),
  outputTokens: tokens.catch(0),
  cachedInputTokens: tokens.catch(0),
  model: z.string().catch(''),
  cost: z.string().optional().catch(undefined),
  metered: z.literal(true).optional().catch(undefined),
});

type Spender = Pick<RunKey, 'tenantId' | 'taskId' | 'runId'>;

/** What tasks cost besides model calls that Baton makes: the price of the agent, and what the agent reports. */
@Injectable()
export class AgentCharges {
  constructor(
    private readonly store: SpendingChargeStore,
    @Inject(LimitsService) private readonly limits: Pick<LimitsService, 'hasSpendingCaps'>,
    @Inject(Environment) private readonly environment: Pick<
      Environment,
      'modelPrices' | 'modelPricesCurrency'
    >,
    private readonly logger: Logger,
  ) {}

  /**
   * Charges the price of the task, once for all its turns and attempts.
   * @throws TurnFailure if a spending cap has no room for it
   */
  async chargeTask(
    { tenantId, taskId, runId }: Spender,
    { definition }: Agent,
    signal: AbortSignal,
  ): Promise<void> {
    const micros = parseMicros(definition.price?.perTask ?? '') ?? 0;
    if (micros === 0) return;
    const charge = async () => {
      const isCapped = await this.limits.hasSpendingCaps(tenantId);
      return this.store.charge({
        tenantId,
        taskId,
        runId,
        kind: 'task',
        micros,
        usageMicros: micros,
        isCapped,
      });
    };
    const [cap] = await retryTransient(charge, { signal });
    if (!cap) return;
    throw new TurnFailure(
      fullCapReason(cap, micros, this.environment.modelPricesCurrency, 'task'),
      'spendingCap',
    );
  }

  /**
   * Charges what an agent reports at the end of a turn: `cost`, or its tokens with the price of the model. Never rejects, because it is
   * spent. Tokens that Baton has metered are charged already; a cost beside them is that of other things.
   * @param metadata of the task, as the agent has written them in this turn
   */
  async chargeReported(
    { tenantId, taskId, runId }: Spender,
    metadata: Record<string, unknown>,
  ): Promise<void> {
    if (!(USAGE in metadata)) return;
    try {
      const reported = this.reportedMicros(metadata[USAGE]);
      if (reported.micros === 0) return;
      const charge = async (): Promise<void> => {
        const isCapped = await this.limits.hasSpendingCaps(tenantId);
        if (!isCapped && reported.usageMicros === 0) return;
        await this.store.charge({ tenantId, taskId, runId, kind: 'reported', ...reported, isCapped });
      };
      await retryTransient(charge, { signal: AbortSignal.timeout(REPORT_MS) });
    } catch (error) {
      this.logger.warn('the reported cost of a task could not be saved', {
        err: error,
        tenantId,
        taskId,
        runId,
      });
    }
  }

  /** The usage has the tokens of the task, and prices them itself. */
  private reportedMicros(usage: unknown): Pick<SpendingCharge, 'micros' | 'usageMicros'> {
    const { data } = reportedUsage.safeParse(usage);
    if (!data) return { micros: 0, usageMicros: 0 };
    const price = data.metered ? undefined : priceOf(data.model, this.environment.modelPrices);
    const ofTokens = price ? microsOf({ ...data, cachedTokens: data.cachedInputTokens }, price) : 0;
    const cost = data.cost === undefined ? undefined : (parseMicros(data.cost) ?? 0);
    return { micros: cost ?? ofTokens, usageMicros: Math.max(0, (cost ?? 0) - ofTokens) };
  }
}
