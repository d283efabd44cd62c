import { agentFile } from '@baton/a2a';
import { z } from 'zod';
import { RUNTIME_CONFIGS } from './runtime-configs.js';

/** What has no form in JSON Schema is left to the server to check. */
const OPTIONS = { io: 'input', unrepresentable: 'any' } as const;

/**
 * The JSON Schema (2020-12) of an agent file: what every agent may say of itself, and for each runtime what its
 * `config` may hold.
 */
export function agentSchema(): object {
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
