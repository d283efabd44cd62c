import { type Agent, USAGE } from '@baton/a2a';
import { Environment, microsOf, parseMicros, priceOf } from '@baton/config';
import { type RunKey, retryTransient, SpendingChargeStore } from '@baton/database';
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

/** What tasks cost besides calls of models that Baton makes: the price of the agent, and what the agent reports. */
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
    const charge = async () =>
      (await this.limits.hasSpendingCaps(tenantId))
        ? this.store.charge({ tenantId, taskId, runId, kind: 'task', micros })
        : [];
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
      const micros = this.reportedMicros(metadata[USAGE]);
      if (micros === 0) return;
      const charge = async (): Promise<void> => {
        if (!(await this.limits.hasSpendingCaps(tenantId))) return;
        await this.store.charge({ tenantId, taskId, runId, kind: 'reported', micros });
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

  private reportedMicros(usage: unknown): number {
    const { data } = reportedUsage.safeParse(usage);
    if (!data) return 0;
    if (data.cost !== undefined) return parseMicros(data.cost) ?? 0;
    if (data.metered) return 0;
    const price = priceOf(data.model, this.environment.modelPrices);
    return price ? microsOf({ ...data, cachedTokens: data.cachedInputTokens }, price) : 0;
  }
}
