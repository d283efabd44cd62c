import { ComputePool, ComputeRefused } from '@baton/compute';
import { AgentFailure } from './agent-failure.js';
import type { JsonSchema } from './tools/tool-sources.js';

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
