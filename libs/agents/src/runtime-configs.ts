import { type AgentDefinition, ProtocolError, parseFields } from '@baton/a2a';
import { ComputePool, ComputeRefused } from '@baton/compute';
import { z } from 'zod';
import type { RuntimeName } from './runtimes.js';
import { executorConfig } from './runtimes/executor/executor-config.js';
import { llmConfigSchema } from './runtimes/llm/config.js';
import { remoteConfigSchema } from './runtimes/remote-a2a/remote-config.js';

const noSettings = (runtime: string) => z.strictObject({}, `the ${runtime} runtime takes no settings`);

/**
 * What `config` of an agent's definition may hold, by the name of its runtime; one row each. It needs no runtime,
 * so every process checks with it, and `agent.schema.json` is made from it.
 */
export const RUNTIME_CONFIGS: Readonly<Record<RuntimeName, z.ZodType>> = {
  echo: noSettings('echo'),
  executor: executorConfig,
  index: noSettings('index'),
  llm: llmConfigSchema,
  'remote-a2a': remoteConfigSchema,
};

/**
 * Check the settings of a definition as its runtime reads them. Throws `invalid-params` naming the path of every
 * wrong field, or the runtimes there are.
 */
export function assertConfig({ runtime, config }: Pick<AgentDefinition, 'runtime' | 'config'>): void {
  if (!isRuntime(runtime)) {
    const known = Object.keys(RUNTIME_CONFIGS).join(', ');
    throw ProtocolError.invalidParams('runtime', `there is no runtime "${runtime}"; there are ${known}`);
  }
  parseFields(RUNTIME_CONFIGS[runtime], config, 'config');
}

/**
 * Check that the JSON schemas of a definition's settings can be compiled. Throws `invalid-params` naming the field, and
 * `limit-exceeded` while too many schemas of the tenant wait for that.
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
