import { OPERATIONS, ProtocolError } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { RequestListing } from '@baton/tasks';
import { Controller, Get, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { RequireScope } from '../../access/access.guard.js';
import { AgentFinder } from '../../core/request-context.js';
import { nameQuery, QueryPipe, timeQuery } from '../../openapi/query-pipe.js';
import { Describe } from '../../openapi/route.js';
import { timeSchema } from '../../openapi/schemas.js';

const KEYS = ['day', 'agent', 'owner'] as const;
type Key = (typeof KEYS)[number];
const DEFAULT_DAYS = 7;
const DAY_MS = 24 * 60 * 60 * 1000;

const BY = new QueryPipe<Key>(
  { description: 'What is summed up', schema: { type: 'string', enum: [...KEYS], default: 'day' } },
  (text, name) => {
    if (text === undefined || text === '') return 'day';
    const key = KEYS.find((each) => each === text);
    if (key) return key;
    throw ProtocolError.invalidParams(name, `must be one of ${KEYS.join(', ')}`);
  },
);
const SINCE = timeQuery(`Only tasks whose status is not older. Left out: ${DEFAULT_DAYS} days ago`);
const AGENT = nameQuery('Only tasks of this agent: its slug or id');

const usageAnswer = z
  .object({
    by: z.enum(KEYS),
    since: timeSchema,
    complete: z
      .boolean()
      .describe('False: only the newest 10,000 tasks are counted, or the first 1,000 rows are shown'),
    usage: z.array(
      z.object({
        key: z
          .string()
          .describe(
            'The day (UTC), the id of the agent, or the key of the owner; empty: made by an earlier release',
          ),
        tasks: z.int(),
        failed: z.int(),
        seconds: z.number().describe('From the creation of each task to its last status'),
        input_tokens: z.number(),
        output_tokens: z.number(),
      }),
    ),
  })
  .meta({ id: 'Usage' });

/** What tasks have used, of those that the caller sees. */
@Controller('v1/usage')
export class UsageController {
  constructor(
    private readonly agents: AgentFinder,
    private readonly listing: RequestListing,
  ) {}

  @Describe({
    id: 'getUsage',
    summary: 'Sums up the tasks and the tokens of models by day, agent or owner',
    answer: usageAnswer,
  })
  @RequireScope(...OPERATIONS.listTasks.scopes)
  @Get()
  async usage(
    @Req() request: FastifyRequest,
    @Query('by', BY) by: Key,
    @Query('since', SINCE) from: Date | undefined,
    @Query('agent', AGENT) agent: string | undefined,
  ): Promise<z.infer<typeof usageAnswer>> {
    const caller = callerOf(request);
    const since = from ?? new Date(Date.now() - DEFAULT_DAYS * DAY_MS);
    const agentId = await this.agents.idOf(caller, agent);
    const filter = { since, ...(agentId !== undefined && { agentId }) };
    const { groups, isWhole } = await this.listing.usage(caller, by, filter);
    return {
      ...{ by, since: since.toISOString(), complete: isWhole },
      usage: groups.map(({ inputTokens, outputTokens, ...group }) => ({
        ...{ ...group, input_tokens: inputTokens, output_tokens: outputTokens },
      })),
    };
  }
}
