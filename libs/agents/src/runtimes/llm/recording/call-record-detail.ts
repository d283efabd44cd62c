import { z } from 'zod';

const usage = z.object({
  inputTokens: z.number(),
  outputTokens: z.number(),
  reasoningTokens: z.number(),
  cachedInputTokens: z.number(),
  estimated: z.boolean().optional(),
});

/** The form of a stored record. */
const stored = z.object({
  sent: z
    .object({
      instructions: z.string(),
      messages: z.array(z.unknown()),
      tools: z.array(z.unknown()),
      parameters: z.unknown(),
      left: z.object({ messages: z.number(), tools: z.number() }),
    })
    .nullable(),
  said: z.object({
    text: z.string(),
    reasoning: z.string(),
    calls: z.array(z.object({ id: z.string(), tool: z.string(), input: z.string() })),
    finish: z.string().nullable(),
    providerFinish: z.string().nullable(),
    usage,
    response: z.object({ id: z.string().optional(), model: z.string() }).nullable(),
    error: z.string().nullable(),
    complaint: z.record(z.string(), z.unknown()).nullable(),
    left: z.object({ characters: z.number(), calls: z.number() }),
  }),
});

/** The request and the answer of one model call. */
export type CallRecordDetail = z.output<typeof stored>;

/** Reads a stored record. Undefined for another value, such as an imported one. */
export const callRecordDetail = (value: unknown): CallRecordDetail | undefined =>
  stored.safeParse(value).data;
