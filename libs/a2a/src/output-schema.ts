import type { Agent, AgentDefinition, ListedAgent } from './agent.js';
import type { JsonObject } from './model.js';

/** Lists show the schemas of all agents at once. */
const MAX_BYTES = 16 * 1024;

/** The JSON schema of the data that an agent answers with, if its settings have one that is not too large for a list. */
export function outputSchemaOf({
  runtime,
  config,
}: Pick<AgentDefinition, 'runtime' | 'config'>): JsonObject | undefined {
  const output = runtime === 'llm' ? (config.output as { schema?: JsonObject } | undefined) : undefined;
  const schema = output?.schema;
  return schema && Buffer.byteLength(JSON.stringify(schema)) <= MAX_BYTES ? schema : undefined;
}

/** An agent as lists have it. */
export function listedAgent({ definition, ...agent }: Agent): ListedAgent {
  const outputSchema = outputSchemaOf(definition);
  return { ...agent, definition: { ...definition, ...(outputSchema && { outputSchema }) } };
}
