import { schemaExcess } from '@baton/compute';
import { z } from 'zod';
import { duration } from './duration.js';
import { callees, delegation } from './tools/callees/callees-config.js';
import { mcpServers } from './tools/mcp/mcp-config.js';

const whole = (min: number, max: number) => {
  const allowed = `must be a whole number from ${min} to ${max}`;
  return z.int(allowed).min(min, allowed).max(max, allowed);
};

const fraction = (max: number) =>
  z
    .number(`must be a number from 0 to ${max}`)
    .min(0, `must be a number from 0 to ${max}`)
    .max(max, `must be a number from 0 to ${max}`);

export const PROVIDERS = ['openai', 'anthropic', 'google', 'openai-compatible'] as const;
export type Provider = (typeof PROVIDERS)[number];

const MODEL = new RegExp(`^(${PROVIDERS.join('|')})/\\S{1,200}$`);
const MODEL_RULE = `must be provider/model, and the provider one of ${PROVIDERS.join(', ')}`;
const SECRET_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

const memory = z.strictObject({
  /** Most messages of the user, each with what came of it, that the model is reminded of. */
  turns: whole(1, 100).prefault(20),
  /** Most tokens of them, by estimate. */
  tokens: whole(1, 10_000_000).prefault(8000),
});

const jsonSchema = z
  .record(z.string(), z.unknown(), 'must be a JSON schema of an object')
  .refine((schema) => schema['type'] === 'object', 'must be a JSON schema with type: object')
  // Whether it can be compiled is found out by a thread: see assertSchemas.
  .superRefine((schema, context) => {
    const excess = schemaExcess(schema);
    if (excess) context.addIssue({ code: 'custom', message: `${excess}: make it smaller` });
  });

/** The settings of an llm agent, as an author writes them. */
export const llmConfigSchema = z
  .strictObject({
    /** Provider and model; the rest of the settings holds for every provider. */
    model: z.string(MODEL_RULE).regex(MODEL, MODEL_RULE),
    /** Which of OpenAI's interfaces. */
    api: z.enum(['responses', 'chat'], 'must be "responses" or "chat"').optional(),
    /** Where the provider is, if not at its usual address: a gateway, Ollama, vLLM. */
    baseUrl: z
      .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
      .max(2048, 'must have at most 2048 characters')
      .optional(),
    /** Name of the tenant's secret that holds the key; the provider's name if it is left out. */
    key: z.string().regex(SECRET_NAME, 'must be the name of a secret').optional(),
    /** What the model is told before the conversation. */
    prompt: z.string('must be text').max(200_000, 'must have at most 200000 characters').optional(),
    temperature: fraction(2).optional(),
    topP: fraction(1).optional(),
    maxOutputTokens: whole(1, 10_000_000).optional(),
    /** How much the model thinks before it answers, where it can. */
    reasoning: z.enum(['low', 'medium', 'high'], 'must be "low", "medium" or "high"').optional(),
    /** The reply is a JSON value of this schema, as a data part. */
    output: z.strictObject({ schema: jsonSchema }).optional(),
    /** What the model knows of the earlier tasks of the context. */
    memory: z.union([z.literal('off'), memory], 'must be "off" or {turns, tokens}').prefault({}),
    /** Most calls of the model in one turn. */
    steps: whole(1, 1000).prefault(10),
    budget: z
      .strictObject({
        /** Most tokens of one run, read and written. */
        tokens: whole(1, 1_000_000_000).optional(),
      })
      .prefault({}),
    /** Longest time of one call of the model, to its last word. */
    timeout: duration('120s'),
    /** Longest time to the first word of the model. */
    firstToken: duration('60s'),
    /** Longest pause between two words of the model. */
    stall: duration('30s'),
    /** How often a call that failed is made again, where that may help. */
    retries: whole(0, 20).prefault(3),
    tools: z.strictObject({ mcp: mcpServers }).prefault({}),
    /** Other agents that this one may ask. */
    agents: callees.prefault([]),
    delegation: delegation.prefault({}),
  })
  .superRefine((config, context) => {
    const { provider } = splitModel(config.model);
    if (provider === 'openai-compatible' && config.baseUrl === undefined) {
      context.addIssue({
        code: 'custom',
        path: ['baseUrl'],
        message: 'is needed with an openai-compatible model',
      });
    }
    if (config.api !== undefined && provider !== 'openai') {
      context.addIssue({ code: 'custom', path: ['api'], message: 'is for openai models only' });
    }
  });

/** The settings of an llm agent with the standard values filled in; durations are in milliseconds. */
export type LlmConfig = z.output<typeof llmConfigSchema>;

/** The settings of an llm agent. Throws an Error that names the path of the wrong field. */
export function llmConfig(raw: Record<string, unknown>): LlmConfig {
  const result = llmConfigSchema.safeParse(raw);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const path = ['config', ...(issue?.path ?? []), ...unknown].join('.');
  throw new Error(`${path}: ${unknown.length > 0 ? 'is not a setting' : (issue?.message ?? 'is not valid')}`);
}

/** `openai/gpt-5-mini` is the model gpt-5-mini of openai. */
export function splitModel(model: string): { provider: Provider; name: string } {
  const slash = model.indexOf('/');
  return { provider: model.slice(0, slash) as Provider, name: model.slice(slash + 1) };
}
