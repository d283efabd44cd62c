import { ComputePool, ComputeRefused } from '@baton/compute';
import { AgentFailure } from './agent-failure.js';
import type { JsonSchema } from './tools/agent-tool.js';

const REMEDY = 'make the schema simpler, with fewer nested allOf, anyOf, not, $ref and patterns';

/** Checks what a model has said against schemas of tenants and tool servers, in threads that can be given up. */
export class SchemaChecks {
  constructor(
    private readonly pool: ComputePool,
    private readonly tenantId: string,
  ) {}

  /**
   * What is wrong with an answer, by the agent's own schema; undefined if nothing is.
   * @throws AgentFailure if that can't be found out in time
   */
  answer(schema: JsonSchema, json: string): Promise<string | undefined> {
    return this.check(
      schema,
      json,
      "The check of the model's answer against config.output.schema of the agent",
    );
  }

  /** The same of the input that a model gives a tool. */
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
