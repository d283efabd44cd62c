import { agentSchema } from '@baton/agents';
import { Controller, Get, Header } from '@nestjs/common';
import { z } from 'zod';
import { Public } from '../../access/route-access.js';
import { Describe } from '../../openapi/route.js';

/** The JSON schema of agent files, for editors and programs. */
@Public()
@Controller(['/agent.schema.json', '/v1/agent.schema.json'])
export class AgentSchemaController {
  private text: string | undefined;

  // The method returns the JSON as text.
  @Describe<unknown>({
    id: 'getAgentSchema',
    summary: 'The JSON Schema of agent files',
    answer: z.record(z.string(), z.unknown()),
    answerTypes: ['application/schema+json'],
  })
  @Get()
  @Header('content-type', 'application/schema+json')
  @Header('cache-control', 'public, max-age=300')
  schema(): string {
    this.text ??= JSON.stringify(agentSchema());
    return this.text;
  }
}
