import { costOf, type ModelPrices, priceOf, roundedCost } from '@baton/config';
import type { ModelCallRecord } from '@baton/tasks';
import { z } from 'zod';
import { timeSchema } from '../../openapi/schemas.js';

export const modelCall = z
  .object({
    run_id: z.string(),
    attempt: z.int(),
    at: timeSchema.nullable().describe('When it began. Null: an earlier release made it'),
    ms: z.number().nullable().describe('How long it took'),
    model: z.string().describe('provider/model'),
    finish: z
      .string()
      .nullable()
      .describe(
        'Why the answer ended: `stop`, `tool-calls`, `length`, `content-filter`, `error` or `other`. Null: the call failed',
      ),
    provider_finish: z
      .string()
      .nullable()
      .describe(
        "The same in the provider's own word. Null: it gave none, or an earlier release made the call",
      ),
    input_tokens: z.number(),
    output_tokens: z.number(),
    cached_tokens: z.number().describe('Those of the input tokens that came from the cache of the provider'),
    cache_write_tokens: z
      .number()
      .describe('Those of the input tokens that the provider has written into its cache'),
    cost: z.number().nullable().describe('In `currency`. Null: the operator has set no price of the model'),
    tools: z.array(z.string()).describe('Names of the tools that the answer asks for, at most 20'),
    tools_not_made: z.boolean().describe('No call of the answer was made, because it was not whole'),
    is_summary: z
      .boolean()
      .describe('The call has summarised the conversation, so that it stays within the context of the model'),
    error: z.string().nullable().describe('Why it failed. Null: it did not'),
  })
  .meta({ id: 'ModelCall' });

/** A model call, without prompt and answer. */
export function encodeModelCall(
  call: ModelCallRecord,
  prices: ModelPrices | undefined,
): z.infer<typeof modelCall> {
  const price = priceOf(call.model, prices);
  return {
    run_id: call.runId,
    attempt: call.attempt,
    at: call.at,
    ms: call.ms,
    model: call.model,
    finish: call.finish,
    provider_finish: call.providerFinish,
    input_tokens: call.inputTokens,
    output_tokens: call.outputTokens,
    cached_tokens: call.cachedTokens,
    cache_write_tokens: call.cacheWriteTokens,
    cost: price ? roundedCost(costOf(call, price)) : null,
    tools: call.tools,
    tools_not_made: call.isNotMade,
    is_summary: call.isSummary,
    error: call.error,
  };
}
