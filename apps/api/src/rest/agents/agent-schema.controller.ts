import { agentSchema } from '@baton/agents';
import { Controller, Get, Header } from '@nestjs/common';
import { Public } from '../../access/access.guard.js';

/** The JSON schema of an agent file, for editors and for whoever writes agents by program. */
@Public()
@Controller(['/agent.schema.json', '/v1/agent.schema.json'])
export class AgentSchemaController {
  private readonly text = JSON.stringify(agentSchema());

  @Get()
  @Header('content-type', 'application/schema+json')
  @Header('cache-control', 'public, max-age=300')
  schema(): string {
    return this.text;
  }
}
