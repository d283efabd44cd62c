import { schemaExcess } from '@baton/compute';
import { RECORD_MODES } from '@baton/config';
import {
  MODEL_PROVIDER_NAMES,
  type ModelApi,
  type ModelProviderName,
  modelProvider,
  originOf,
  SECRET_NAME,
  SLUG,
} from '@baton/a2a';
import { z } from 'zod';
import { duration, durationText, wholeNumber } from '../../setting-fields.js';
import { processFields } from '../../process-settings.js';
import { EFFORTS, refusedSettings } from './model-features.js';
import { optionsProblem } from './provider-options.js';
import { mcpServers } from './tools/mcp/mcp-config.js';

const fraction = (max: number) =>
  z
    .number(`must be a number from 0 to ${max}`)
    .min(0, `must be a number from 0 to ${max}`)
    .max(max, `must be a number from 0 to ${max}`);

const MODEL = new RegExp(`^(${MODEL_PROVIDER_NAMES.join('|')})/\\S{1,200}$`);
const MODEL_RULE = `must be provider/model, and the provider one of ${MODEL_PROVIDER_NAMES.join(', ')}`;
const COMPACTION_RULE = 'must be a number from 0.1 to 0.95';
const OPTIONS_RULE = 'must be options by the name of the provider, such as {openai: {…}}';

const memory = z.strictObject({
  /** Maximum earlier messages of the user, each with its answer. */
  turns: wholeNumber(1, 100).prefault(20),
  /** Maximum tokens of them, by estimate. */
  tokens: wholeNumber(1, 10_000_000).prefault(8000),
});

const compaction = z.strictObject({
  /** The share of the context that a request may fill. */
  at: z.number(COMPACTION_RULE).min(0.1, COMPACTION_RULE).max(0.95, COMPACTION_RULE).prefault(0.8),
});

const jsonSchema = z
  .record(z.string(), z.unknown(), 'must be a JSON schema of an object')
  .refine((schema) => schema['type'] === 'object', 'must be a JSON schema with type: object')
  // A thread checks whether it compiles: see assertSchemas.
  .superRefine((schema, context) => {
    const excess = schemaExcess(schema);
    if (excess) context.addIssue({ code: 'custom', message: `${excess}: make it smaller` });
  });

/** Each agent is a tool, whose description each request has. */
const MAX_CALLEES = 100;

const slug = z.string('must be the slug of an agent').regex(SLUG, 'must be the slug of an agent');

const callee = z.union(
  [
    slug.transform((agent) => ({ agent, description: undefined })),
    z.strictObject({ agent: slug, description: z.string().trim().min(1).max(2000).optional() }),
  ],
  'must be the slug of an agent, or {agent, description}',
);

/** The agents of the tenant that an agent can delegate to; `all` = every agent that callers can see. */
const callees = z.union(
  [z.literal('all'), z.array(callee).max(MAX_CALLEES, `must have at most ${MAX_CALLEES} agents`)],
  'must be "all" or a list of slugs, or of {agent, description}',
);

/** Can only lower the operator's DELEGATION_DEPTH and DELEGATION_TASKS. */
const delegation = z.strictObject({
  /** Maximum delegation depth below the root task. */
  depth: wholeNumber(1, 100).optional(),
  /** Maximum number of tasks below the root task. */
  tasks: wholeNumber(1, 10_000).optional(),
});

/** A model and how it is asked. */
const modelFields = {
  /** `provider/model`. All other settings work with every provider, unless they say otherwise. */
  model: z.string(MODEL_RULE).regex(MODEL, MODEL_RULE),
  /** The interface of OpenAI to use. */
  api: z.enum(['responses', 'chat'], 'must be "responses" or "chat"').optional(),
  /** The provider's URL, if it is not the usual one: a gateway, Ollama, vLLM. */
  baseUrl: z
    .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
    .max(2048, 'must have at most 2048 characters')
    .optional(),
  /** Name of the tenant's secret with the key. Default: the provider's name. */
  key: z.string().regex(SECRET_NAME, 'must be the name of a secret').optional(),
  temperature: fraction(2).optional(),
  topP: fraction(1).optional(),
  maxOutputTokens: wholeNumber(1, 10_000_000).optional(),
  /** Amount of reasoning before the answer, for models that support it. */
  reasoning: z.enum(EFFORTS, 'must be "low", "medium" or "high"').optional(),
  /** Maximum tokens of a request with its answer. Default: Baton's value for the model, or 128000. */
  contextWindow: wholeNumber(1000, 100_000_000).optional(),
  /** Whether the model is shown images and other files that tools return. `auto`: if the model is in Baton's list of models that take them. */
  toolFiles: z.enum(['auto', 'on', 'off'], 'must be "auto", "on" or "off"').optional(),
  /** Further options of the provider, as its package of the AI SDK takes them: `{openai: {serviceTier: flex}}`. */
  providerOptions: z
    .record(z.string(), z.record(z.string(), z.unknown(), OPTIONS_RULE), OPTIONS_RULE)
    .optional(),
};

/** Settings that depend on the provider of the model. */
function checkModel(settings: ModelFields, context: z.core.$RefinementCtx): void {
  const { model, baseUrl, api, providerOptions = {} } = settings;
  const { provider } = splitModel(model);
  // `model` may be wrong itself.
  if (!MODEL.test(model)) return;
  const { url, apis } = modelProvider(provider);
  if (url === null && baseUrl === undefined) {
    context.addIssue({ code: 'custom', path: ['baseUrl'], message: `is needed with an ${provider} model` });
  }
  if (api !== undefined && apis.length <= 1) {
    context.addIssue({ code: 'custom', path: ['api'], message: 'is for openai models only' });
  }
  const problem = optionsProblem(provider, apiOf({ model, api }), providerOptions);
  if (problem) {
    context.addIssue({
      code: 'custom',
      path: ['providerOptions', ...problem.path],
      message: problem.message,
    });
  }
}

const fallbackModel = z.strictObject(modelFields, 'must be {model, …}').superRefine(checkModel);

/** A caller waits until each has failed. */
const MAX_FALLBACKS = 5;

/** The settings of an llm agent, as its author writes them. */
export const llmConfigSchema = z
  .strictObject({
    ...modelFields,
    /** Models that are called in this order if the previous one is overloaded or unreachable. They have no settings of `model`. */
    fallback: z
      .array(fallbackModel, 'must be a list of {model, …}')
      .max(MAX_FALLBACKS, `must have at most ${MAX_FALLBACKS} models`)
      .prefault([]),
    /** The system prompt. */
    prompt: z.string('must be text').max(200_000, 'must have at most 200000 characters').optional(),
    /** Whether Anthropic keeps the instructions, the tools and the conversation in its cache. */
    promptCache: z.enum(['auto', 'off'], 'must be "auto" or "off"').prefault('auto'),
    /** Makes the reply a data part: a JSON value of this schema. */
    output: z.strictObject({ schema: jsonSchema }).optional(),
    /** How much of the context's earlier tasks the model reads. */
    memory: z.union([z.literal('off'), memory], 'must be "off" or {turns, tokens}').prefault({}),
    /** When older steps of a task are summarised, so that it stays within the context of the model. */
    compaction: z.union([z.literal('off'), compaction], 'must be "off" or {at}').prefault({}),
    /** Maximum model calls in one turn. */
    steps: wholeNumber(1, 1000).prefault(10),
    budget: z
      .strictObject({
        /** Maximum tokens of one run, input and output. */
        tokens: wholeNumber(1, 1_000_000_000).optional(),
      })
      .prefault({}),
    /** Maximum duration of one model call. */
    timeout: duration('120s'),
    /** Maximum time to the first output of the model. */
    firstToken: duration('60s'),
    /** Maximum pause between two outputs of the model. */
    stall: duration('30s'),
    /** Maximum retries of a failed model call. */
    retries: wholeNumber(0, 20).prefault(3),
    /** Which calls are recorded, with the request and the answer of the model. Default: RECORD_DEFAULT. */
    record: z.enum(RECORD_MODES, 'must be "none", "failed" or "all"').optional(),
    tools: z.strictObject({ mcp: mcpServers }).prefault({}),
    /** The processes that run the functions in `tools/`, of an agent in BATON_AGENTS_DIR. */
    functions: z
      .strictObject({
        ...processFields,
        /** Maximum time of a call. */
        timeout: duration('60s'),
        /** Characters of a result that the model reads at once. */
        resultLimit: wholeNumber(100, 1_000_000).prefault(50_000),
      })
      .prefault({}),
    /** Terms of an approval: who may give it, and its expiry. */
    approvals: z
      .strictObject({
        /** Guests of a public host may approve the calls of their own tasks. */
        guests: z.boolean('must be true or false').prefault(false),
        /** `anybody`: every caller that may answer. `other`: every such caller but the owner of the task. */
        by: z.enum(['anybody', 'other'], 'must be "anybody" or "other"').prefault('anybody'),
        /** After this time a call counts as refused; left out = never. */
        expires: durationText.optional(),
      })
      .prefault({}),
    /** Other agents that this agent may call. */
    agents: callees.prefault([]),
    delegation: delegation.prefault({}),
  })
  .superRefine(checkModel);

/**
 * The settings of an llm agent that is saved: with the rules of its model. An agent that was saved before a rule existed still
 * runs.
 */
export const savedLlmConfigSchema = llmConfigSchema.superRefine((config, context) => {
  for (const [i, settings] of [config, ...config.fallback].entries()) {
    const { provider, name } = splitModel(settings.model);
    for (const { field, message } of refusedSettings(provider, name, settings)) {
      context.addIssue({ code: 'custom', path: i === 0 ? [field] : ['fallback', i - 1, field], message });
    }
  }
});

/** The settings of an llm agent with defaults filled in. Durations are in milliseconds. */
export type LlmConfig = z.output<typeof llmConfigSchema>;

/** A model and how it is asked. */
export type ModelFields = z.output<z.ZodObject<typeof modelFields>>;

/** The agents of `agents`. */
export type Callees = z.output<typeof callees>;

/** The settings of code that uses tools. Its model is never called. */
export const toolsAlone = (mcp: readonly unknown[], approvals?: unknown): Record<string, unknown> => ({
  model: 'openai/none',
  tools: { mcp },
  ...(approvals !== undefined && { approvals }),
});

/** Parses the settings of an llm agent. Throws an Error with the path of the wrong field. */
export function llmConfig(raw: Record<string, unknown>): LlmConfig {
  const result = savedLlmConfigSchema.safeParse(raw);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [];
  const path = ['config', ...(issue?.path ?? []), ...unknown].join('.');
  throw new Error(`${path}: ${unknown.length > 0 ? 'is not a setting' : (issue?.message ?? 'is not valid')}`);
}

/** The settings with each model of an agent: `model` first, then `fallback`. */
export function modelsOf(config: LlmConfig): [LlmConfig, ...LlmConfig[]] {
  const shared = Object.fromEntries(Object.entries(config).filter(([field]) => !(field in modelFields)));
  return [config, ...config.fallback.map((settings) => ({ ...shared, ...settings }) as LlmConfig)];
}

/**
 * The secret with the key of the model, and the origin that receives it.
 * @returns `field`: the setting that decides where the key goes
 */
export function modelKey({ model, baseUrl, key }: Pick<LlmConfig, 'model' | 'baseUrl' | 'key'>) {
  const { provider } = splitModel(model);
  const url = baseUrl ?? modelProvider(provider).url ?? '';
  const field = baseUrl !== undefined ? 'baseUrl' : key !== undefined ? 'key' : 'model';
  return { name: key ?? provider, destination: originOf(url), field };
}

/** Splits `openai/gpt-5-mini` into the provider `openai` and the model `gpt-5-mini`. */
export function splitModel(model: string): { provider: ModelProviderName; name: string } {
  const slash = model.indexOf('/');
  return { provider: model.slice(0, slash) as ModelProviderName, name: model.slice(slash + 1) };
}

/** The interface of its provider that an agent uses. */
export const apiOf = ({ model, api }: Pick<LlmConfig, 'model' | 'api'>): ModelApi =>
  api ?? modelProvider(splitModel(model).provider).apis[0];
