import { ComputePool, ComputeRefused } from '@baton/compute';
import { describeExcess, jsonExcess, parseBoundedJson } from '@baton/a2a';
import { AgentFailure } from './agent-failure.js';
import type { JsonSchema } from './tools/tool-sources.js';
import { withoutFence } from './without-fence.js';

const REMEDY = 'make the schema simpler, with fewer nested allOf, anyOf, not, $ref and patterns';

/** Validates output of a model against schemas of tenants and tool servers, in threads with a time limit. */
export class SchemaChecks {
  constructor(
    private readonly pool: ComputePool,
    private readonly tenantId: string,
  ) {}

  /**
   * Validates an answer against the agent's schema.
   * @returns the problem, or undefined
   * @throws AgentFailure if the check takes too long
   */
  answer(schema: JsonSchema, json: string): Promise<string | undefined> {
    return this.check(
      schema,
      json,
      "The check of the model's answer against config.output.schema of the agent",
    );
  }

  /** Validates the input of a tool call. The result is as for `answer`. */
  input(tool: string, schema: JsonSchema, input: unknown): Promise<string | undefined> {
    return this.check(
      schema,
      JSON.stringify(input ?? null),
      `The check of the input of "${tool}" against the tool's schema`,
    );
  }

  private async check(schema: JsonSchema, json: string, what: string): Promise<string | undefined> {
    try {
      return await this.pool.check(this.tenantId, schema, json);
    } catch (error) {
      if (!(error instanceof ComputeRefused)) throw error;
      throw new AgentFailure(`${what} ${error.message}: ${REMEDY}.`, { cause: error });
    }
  }
}

/** Tells the model what is wrong with its answer. */
export const answerCorrection = (wrong: string): string =>
  `That is not what was asked for: ${wrong}. Answer again, with JSON of the schema and nothing else.`;

/** A valid JSON value, or the problem. */
export type StructuredAnswer = { value: unknown } | { wrong: string };

/**
 * Parses and validates the JSON of an answer.
 * @param check validates a text that is JSON: returns the problem, or undefined
 */
export async function structuredAnswer(
  text: string,
  check: (json: string) => Promise<string | undefined>,
): Promise<StructuredAnswer> {
  const json = withoutFence(text.trim());
  if (json === '') return { wrong: 'it is empty' };
  const excess = jsonExcess(json);
  if (excess) return { wrong: `it ${describeExcess(excess)}` };
  const value = parseBoundedJson(json);
  if (value === undefined) return { wrong: 'it is not JSON' };
  const wrong = await check(json);
  return wrong === undefined ? { value } : { wrong };
}
