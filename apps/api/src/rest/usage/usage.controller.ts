import { clock } from '@baton/telemetry';
import { OPERATIONS, ProtocolError } from '@baton/a2a';
import { Environment } from '@baton/config';
import { type Caller, callerOf } from '@baton/identity';
import {
  UsageReports,
  TIMED_AGENTS,
  TIMED_TASKS,
  USAGE_DAYS,
  USAGE_KEY_NAMES,
  type UsageKey,
} from '@baton/tasks';
import { Controller, Get, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { RequireScope } from '../../access/route-access.js';
import { AgentFinder } from '../../core/agent-finder.js';
import { nameQuery, QueryPipe, timeQuery } from '../../openapi/query-pipe.js';
import { Describe } from '../../openapi/route.js';
import { timeSchema } from '../../openapi/schemas.js';
import { HOUR_MS, hourOf, UNTIL } from './hours.js';
import { FORMAT, sendCsv, wantsCsv } from './csv.js';
import { hasCosts, isUnpriced, type UsageGroup, usageGroups } from './usage-groups.js';

/** A week, which shows a day beside the same day of others. */
const DEFAULT_DAYS = 7;
const DAY_MS = 24 * HOUR_MS;
/** Groups of an answer. */
const MAX_GROUPS = 1_000;
/** Models without a price that an answer names. */
const MAX_UNPRICED = 20;

const BY = new QueryPipe<UsageKey>(
  { description: 'What is summed up', schema: { type: 'string', enum: USAGE_KEY_NAMES, default: 'day' } },
  (text, name) => {
    if (text === undefined || text === '') return 'day';
    const key = USAGE_KEY_NAMES.find((each) => each === text);
    if (key) return key;
    throw ProtocolError.invalidParams(name, `must be one of ${USAGE_KEY_NAMES.join(', ')}`);
  },
);
const SINCE = timeQuery(
  `Tasks and calls of models since the hour (UTC) of this time. Left out: ${DEFAULT_DAYS} days ago`,
);
const AGENT = nameQuery('Only tasks of this agent: its slug or id');
/** When rows have the times of agents. */
const TIMES = `With \`by=agent\` and \`tasks:read\`, in the ${TIMED_AGENTS} rows with the most tasks.`;

const usageAnswer = z
  .object({
    by: z.enum(USAGE_KEY_NAMES as [UsageKey, ...UsageKey[]]),
    since: timeSchema,
    until: timeSchema,
    complete: z
      .boolean()
      .describe(
        `False: some tasks are not counted yet, the first ${MAX_GROUPS} rows are shown, or hours of more than ${USAGE_DAYS} days ago are asked for`,
      ),
    currency: z
      .string()
      .nullable()
      .describe('Of all costs. Null: the operator has set no prices, and no agent has cost anything'),
    unpriced_models: z
      .array(z.string())
      .describe(`Models whose tokens are in no cost, because they have no price: the first ${MAX_UNPRICED}`),
    usage: z.array(
      z.object({
        key: z
          .string()
          .describe(
            'The day (UTC), the id of the agent, the key of the owner, the id of the token, or provider/model; empty: none',
          ),
        tasks: z.int(),
        failed: z.int(),
        seconds: z.number().describe('From the creation of each task to its last status'),
        calls: z.int().describe('Calls of models that Baton has made'),
        input_tokens: z.number(),
        output_tokens: z.number(),
        cached_tokens: z
          .number()
          .describe('Those of the input tokens that came from the cache of the provider'),
        cache_write_tokens: z
          .number()
          .describe('Those of the input tokens that the provider has written into its cache'),
        cost: z
          .number()
          .nullable()
          .describe(
            'Of the tokens with a price, with the prices of agents and what agents report. Null: the operator has set no prices, and no agent ' +
              'has cost anything',
          ),
        agent_cost: z
          .number()
          .describe('The part of `cost` that is no tokens: the prices of agents, and what agents report'),
        unpriced_tokens: z.number().describe('Tokens of models without a price'),
        p95_seconds: z
          .number()
          .optional()
          .describe(
            `${TIMES} Of its newest ${TIMED_TASKS} ended tasks, 95 % have taken at most this long, from creation to end`,
          ),
        last_ended_at: timeSchema.optional().describe(`${TIMES} When its newest ended task has ended`),
      }),
    ),
  })
  .meta({ id: 'Usage' });
type UsageAnswer = z.infer<typeof usageAnswer>;

/** What tasks and their model calls have used, of the tasks that the caller sees. */
@Controller('v1/usage')
export class UsageController {
  constructor(
    private readonly agents: AgentFinder,
    private readonly reports: UsageReports,
    private readonly environment: Environment,
  ) {}

  @Describe({
    id: 'getUsage',
    summary: 'Sums up tasks, tokens of models and their cost by day, agent, owner, token or model',
    answer: usageAnswer,
    answerTypes: ['application/json', 'text/csv'],
  })
  @RequireScope(...OPERATIONS.listTasks.scopes)
  @Get()
  async usage(
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
    @Query('by', BY) by: UsageKey,
    @Query('since', SINCE) from: Date | undefined,
    @Query('until', UNTIL) to: Date | undefined,
    @Query('agent', AGENT) agent: string | undefined,
    @Query('format', FORMAT) format: 'json' | 'csv' | undefined,
  ): Promise<void> {
    const caller = callerOf(request);
    const now = clock.now();
    const since = hourOf(from ?? new Date(now - DEFAULT_DAYS * DAY_MS));
    const until = to ? hourOf(to) : new Date(now);
    const agentId = await this.agents.idOf(caller, agent);
    const filter = { since, until, ...(agentId !== undefined && { agentId }) };
    const { sums, isWhole } = await this.reports.read(caller, by, filter);
    const { modelPrices: models, modelPricesCurrency } = this.environment;
    const groups = usageGroups(sums, models);
    const times = by === 'agent' ? await this.timesOf(caller, groups, filter) : undefined;
    const unpriced = new Set(sums.filter((each) => isUnpriced(each, models)).map(({ model }) => model));
    const answer: UsageAnswer = {
      by,
      since: since.toISOString(),
      until: until.toISOString(),
      complete:
        isWhole && groups.length <= MAX_GROUPS && now - since.getTime() <= USAGE_DAYS * DAY_MS + HOUR_MS,
      currency: hasCosts(sums, models) ? modelPricesCurrency : null,
      unpriced_models: [...unpriced].slice(0, MAX_UNPRICED),
      usage: groups.slice(0, MAX_GROUPS).map((group) => ({ ...group, ...times?.get(group.key) })),
    };
    if (!wantsCsv(request, reply, format)) return void (await reply.send(answer));
    await sendCsv(reply, `usage-by-${by}`, tableOf(answer));
  }

  /** How long the tasks of agents have taken, by the id of the agent. */
  private async timesOf(
    caller: Caller,
    groups: readonly UsageGroup[],
    { since, until }: { since: Date; until: Date },
  ): Promise<Map<string, Pick<UsageAnswer['usage'][number], 'p95_seconds' | 'last_ended_at'>>> {
    const most = groups.toSorted((a, b) => b.tasks - a.tasks).slice(0, TIMED_AGENTS);
    const agentIds = most.filter(({ tasks }) => tasks > 0).map(({ key }) => key);
    const times = await this.reports.agentTimes(caller, { agentIds, since, until });
    return new Map(
      times.map(({ agentId, p95Seconds, lastEndedAt }) => [
        agentId,
        { p95_seconds: Math.round(p95Seconds * 1_000) / 1_000, last_ended_at: lastEndedAt.toISOString() },
      ]),
    );
  }
}

/** A table with titles. The title of the key is the kind of the groups. That of the cost names the currency. */
function tableOf({ by, currency, usage }: UsageAnswer): (string | number | null)[][] {
  const titles = [
    by,
    'tasks',
    'failed',
    'seconds',
    'calls',
    'input_tokens',
    'output_tokens',
    'cached_tokens',
    currency === null ? 'cost' : `cost_${currency}`,
    'unpriced_tokens',
    'cache_write_tokens',
    'agent_cost',
  ];
  const rows = usage.map((group) => [
    group.key,
    group.tasks,
    group.failed,
    group.seconds,
    group.calls,
    group.input_tokens,
    group.output_tokens,
    group.cached_tokens,
    group.cost,
    group.unpriced_tokens,
    group.cache_write_tokens,
    group.agent_cost,
  ]);
  return [titles, ...rows];
}
