import { costOf, type ModelPrices, priceOf, roundedCost } from '@baton/config';
import type { UsageSums } from '@baton/tasks';

/** Millionths of the currency. */
const MICROS = 1_000_000;

/** The usage of one key with all models. */
export interface UsageGroup {
  key: string;
  tasks: number;
  failed: number;
  seconds: number;
  calls: number;
  input_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  cache_write_tokens: number;
  /** Null: there are no prices, and no agent has cost anything. */
  cost: number | null;
  agent_cost: number;
  unpriced_tokens: number;
}

/** Whether a model has no price. */
export const isUnpriced = (sums: UsageSums, prices: ModelPrices | undefined): boolean =>
  sums.inputTokens + sums.outputTokens > 0 && priceOf(sums.model, prices) === undefined;

export const hasCosts = (sums: readonly UsageSums[], prices: ModelPrices | undefined): boolean =>
  prices !== undefined || sums.some(({ agentMicros }) => agentMicros > 0);

/** One group for each key, of all its models. Costs are rounded to a millionth. */
export function usageGroups(sums: readonly UsageSums[], prices: ModelPrices | undefined): UsageGroup[] {
  const groups = new Map<string, UsageGroup>();
  const isPriced = hasCosts(sums, prices);
  for (const each of sums) {
    const { key, model, inputTokens, outputTokens, cachedTokens, cacheWriteTokens } = each;
    const price = priceOf(model, prices);
    const agentCost = each.agentMicros / MICROS;
    const cost = (price ? costOf(each, price) : 0) + agentCost;
    const before = groups.get(key) ?? { ...NO_USAGE, key, cost: isPriced ? 0 : null };
    groups.set(key, {
      key,
      tasks: before.tasks + each.tasks,
      failed: before.failed + each.failed,
      seconds: before.seconds + each.seconds,
      calls: before.calls + each.calls,
      input_tokens: before.input_tokens + inputTokens,
      output_tokens: before.output_tokens + outputTokens,
      cached_tokens: before.cached_tokens + cachedTokens,
      cache_write_tokens: before.cache_write_tokens + cacheWriteTokens,
      cost: before.cost === null ? null : before.cost + cost,
      agent_cost: before.agent_cost + agentCost,
      unpriced_tokens: before.unpriced_tokens + (price ? 0 : inputTokens + outputTokens),
    });
  }
  const rounded = ({ cost, agent_cost: agentCost, ...group }: UsageGroup): UsageGroup => ({
    ...group,
    cost: cost === null ? null : roundedCost(cost),
    agent_cost: roundedCost(agentCost),
  });
  return [...groups.values()].map(rounded);
}

export const NO_USAGE = {
  tasks: 0,
  failed: 0,
  seconds: 0,
  calls: 0,
  input_tokens: 0,
  output_tokens: 0,
  cached_tokens: 0,
  cache_write_tokens: 0,
  agent_cost: 0,
  unpriced_tokens: 0,
};
