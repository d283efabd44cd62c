import { decodePageToken, encodePageToken, ProtocolError } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { EFFECT_OUTCOMES, EffectLedger, type EffectOutcome, type TaskEffect } from '@baton/tasks';
import { Controller, Get, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { RequireScope } from '../../access/route-access.js';
import { AgentFinder } from '../../core/agent-finder.js';
import { nameQuery, QueryPipe, timeQuery } from '../../openapi/query-pipe.js';
import { Describe } from '../../openapi/route.js';
import { timeSchema } from '../../openapi/schemas.js';
import { CURSOR, LIMIT, nextCursor } from '../paging.js';

const TASK = nameQuery('Only effects of this task, in one answer');
const AGENT = nameQuery('Only of tasks of this agent: its slug or id');
const SINCE = timeQuery('Only of tasks whose status is not older');
const UNTIL = timeQuery('Only of tasks whose status is older');
const OUTCOME = new QueryPipe<EffectOutcome | undefined>(
  { description: 'Only effects with this outcome', schema: { type: 'string', enum: [...EFFECT_OUTCOMES] } },
  (text, name) => {
    if (text === undefined || text === '') return undefined;
    const outcome = EFFECT_OUTCOMES.find((each) => each === text);
    if (outcome) return outcome;
    throw ProtocolError.invalidParams(name, `must be one of ${EFFECT_OUTCOMES.join(', ')}`);
  },
);

const effect = z
  .object({
    task_id: z.string(),
    agent_id: z.string(),
    kind: z.enum(['step', 'tool']).describe('A step of an agent in code, or the call of a tool'),
    name: z.string(),
    key: z
      .string()
      .nullable()
      .describe('What its receiver knows it by. Null: an earlier release made the call'),
    outcome: z
      .enum(EFFECT_OUTCOMES)
      .describe(
        '`intended`: not sent yet. `sent`: it runs now. `confirmed`: it ended. `failed`: it ended with an error. `unknown`: the ' +
          'process that sent it died, and its outcome is not known',
      ),
    unknown_outcome: z
      .enum(['repeated', 'verified', 'asked', 'failed'])
      .optional()
      .describe('What was done when its outcome was unknown. Left out: it was not, or nothing was done yet'),
    attempts: z.int().describe('How often it was begun'),
    begun_at: timeSchema.nullable(),
    ended_at: timeSchema.nullable(),
    error: z.string().nullable(),
  })
  .meta({ id: 'Effect' });
const effectList = z.object({
  effects: z.array(effect),
  searched: z.int().describe('How many tasks were looked at'),
  next_cursor: nextCursor,
});

/** Effects of tasks outside of Baton. */
@Controller('v1/effects')
export class EffectsController {
  constructor(
    private readonly ledger: EffectLedger,
    private readonly finder: AgentFinder,
  ) {}

  @Describe({
    id: 'listEffects',
    summary:
      'Lists the effects of tasks outside of Baton: steps of agents in code and calls of tools, with their outcome. Tasks with the newest ' +
      'status first. One call looks at 500 tasks at most; `next_cursor` continues',
    answer: effectList,
  })
  // The names of steps show the code of the agent.
  @RequireScope('agents:write')
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
    @Query('task', TASK) task: string | undefined,
    @Query('outcome', OUTCOME) outcome: EffectOutcome | undefined,
    @Query('agent', AGENT) agent: string | undefined,
    @Query('since', SINCE) since: Date | undefined,
    @Query('until', UNTIL) until: Date | undefined,
  ): Promise<z.infer<typeof effectList>> {
    const caller = callerOf(request);
    if (task !== undefined) {
      const all = await this.ledger.ofTask(caller, task);
      const found = all.filter((each) => outcome === undefined || each.outcome === outcome);
      return { effects: found.map(encodeEffect), searched: 1, next_cursor: null };
    }
    const agentId = await this.finder.idOf(caller, agent);
    const filter = {
      ...(agentId !== undefined && { agentId }),
      ...(since && { since }),
      ...(until && { until }),
    };
    const after = cursor ? decodePageToken(cursor, 'cursor') : undefined;
    const { effects, searched, next } = await this.ledger.list(caller, { limit, after }, outcome, filter);
    return { effects: effects.map(encodeEffect), searched, next_cursor: next ? encodePageToken(next) : null };
  }
}

const encodeEffect = (one: TaskEffect): z.infer<typeof effect> => ({
  task_id: one.taskId,
  agent_id: one.agentId,
  kind: one.kind,
  name: one.name,
  key: one.key ?? null,
  outcome: one.outcome,
  ...(one.decision && { unknown_outcome: one.decision }),
  attempts: one.attempts,
  begun_at: one.begunAt,
  ended_at: one.endedAt,
  error: one.error,
});
