import { type AgentDefinition, ProtocolError, parseFields, agentFile } from '@baton/a2a';
import { ComputePool, ComputeRefused } from '@baton/compute';
import { z } from 'zod';
import type { RuntimeName } from './runtimes.js';
import { executorConfig } from './runtimes/executor/executor-config.js';
import { llmConfigSchema, savedLlmConfigSchema } from './runtimes/llm/llm-config.js';
import { remoteConfigSchema } from './runtimes/remote-a2a/remote-config.js';

const noSettings = (runtime: string) => z.strictObject({}, `the ${runtime} runtime takes no settings`);

/**
 * The schema of `config` in an agent's definition, one row per runtime. It loads no runtime, so every process can
 * validate with it. `agent.schema.json` is generated from it.
 */
export const RUNTIME_CONFIGS: Readonly<Record<RuntimeName, z.ZodType>> = {
  echo: noSettings('echo'),
  executor: executorConfig,
  index: noSettings('index'),
  llm: savedLlmConfigSchema,
  'remote-a2a': remoteConfigSchema,
};

/**
 * Validates the settings of a definition. Throws `invalid-params` with the path of every wrong field, or with the
 * known runtimes.
 */
export function assertConfig({ runtime, config }: Pick<AgentDefinition, 'runtime' | 'config'>): void {
  if (!isRuntime(runtime)) {
    const known = Object.keys(RUNTIME_CONFIGS).join(', ');
    throw ProtocolError.invalidParams('runtime', `there is no runtime "${runtime}"; there are ${known}`);
  }
  parseFields(RUNTIME_CONFIGS[runtime], config, 'config');
}

/**
 * Checks that the JSON schemas in a definition's settings compile. Throws `invalid-params` with the field, or
 * `limit-exceeded` while too many schemas of the tenant wait for compilation.
 */
export async function assertSchemas(
  pool: ComputePool,
  tenantId: string,
  { runtime, config }: Pick<AgentDefinition, 'runtime' | 'config'>,
): Promise<void> {
  if (runtime !== 'llm') return;
  const schema = llmConfigSchema.parse(config).output?.schema;
  if (!schema) return;
  const problem = await pool.schemaProblem(tenantId, schema).catch((error: unknown) => {
    if (!(error instanceof ComputeRefused)) throw error;
    return error;
  });
  if (problem === undefined) return;
  const field = 'config.output.schema';
  if (typeof problem === 'string') {
    throw ProtocolError.invalidParams(field, `is not a valid JSON schema (draft 2020-12 or 7): ${problem}`);
  }
  if (problem.limit === 'computeWaiting') throw problem.asLimit();
  throw ProtocolError.invalidParams(field, `${problem.message} to compile: make it simpler or smaller`);
}

const isRuntime = (name: string): name is RuntimeName => Object.hasOwn(RUNTIME_CONFIGS, name);

/** Rules that JSON Schema cannot express are left out. The server checks them. */
const OPTIONS = { io: 'input', unrepresentable: 'any' } as const;

/** The JSON Schema (2020-12) of an agent file: the common fields, and `config` of each runtime. */
export function agentSchema(): { properties: Record<string, unknown>; [keyword: string]: unknown } {
  const { $schema, properties, ...file } = z.toJSONSchema(agentFile, OPTIONS);
  const runtimes = Object.keys(RUNTIME_CONFIGS);
  return {
    $schema,
    title: 'An agent of Baton',
    ...file,
    properties: { ...properties, runtime: { ...(properties?.runtime as object), enum: runtimes } },
    allOf: Object.entries(RUNTIME_CONFIGS).map(([runtime, config]) => settingsOf(runtime, config)),
  };
}

function settingsOf(runtime: string, config: z.ZodType): object {
  const { $schema: _, ...settings } = z.toJSONSchema(config, OPTIONS);
  return {
    if: { properties: { runtime: { const: runtime } }, required: ['runtime'] },
    then: {
      properties: { config: settings },
      ...(!config.safeParse({}).success && { required: ['config'] }),
    },
  };
}
