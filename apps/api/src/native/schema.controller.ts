import { agentSchema } from '@baton/agents';
import { Controller, Get, Header } from '@nestjs/common';

/** Where the schema of agent files is; open to everybody. */
export const SCHEMA_PATHS = ['/agent.schema.json', '/v1/agent.schema.json'] as const;

/** The JSON schema of an agent file, for editors and for whoever writes agents by program. */
@Controller([...SCHEMA_PATHS])
export class SchemaController {
  private readonly text = JSON.stringify(agentSchema());

  @Get()
  @Header('content-type', 'application/schema+json')
  @Header('cache-control', 'public, max-age=300')
  schema(): string {
    return this.text;
  }
}
