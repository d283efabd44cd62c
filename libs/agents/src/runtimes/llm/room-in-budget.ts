import { AgentFailure } from './agent-failure.js';
import type { LlmConfig } from './llm-config.js';
import { type ModelRequest, estimateInput } from './model-call.js';
import { type ModelUsage, tokensOf } from './model-usage.js';

/** Maximum output tokens of a step within the run's budget. Throws AgentFailure if the budget is used up. */
export function roomInBudget(
  config: LlmConfig,
  spent: ModelUsage,
  request: ModelRequest,
): number | undefined {
  const { maxOutputTokens, budget } = config;
  if (budget.tokens === undefined) return maxOutputTokens;
  const left = budget.tokens - tokensOf(spent) - estimateInput(config, request);
  if (left > 0) return Math.min(left, maxOutputTokens ?? Infinity);
  throw new AgentFailure(
    `The run has used ${tokensOf(spent)} tokens, and its budget of ${budget.tokens} (budget.tokens of the agent's ` +
      'settings) has no room for another step.',
  );
}
