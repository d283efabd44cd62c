import { OPERATIONS } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { DeadLetters, refusalOf } from '@baton/tasks';
import { Controller, Get, HttpCode, Param, Post, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { actorOf } from '../../access/actor.js';
import { RequireScope } from '../../access/route-access.js';
import { logContextOf } from '../../http/requests.js';
import { flagQuery } from '../../openapi/query-pipe.js';
import { Describe } from '../../openapi/route.js';
import { CURSOR, LIMIT, nextCursor } from '../paging.js';
import { namesOfTask, taskNames } from '../task-names.js';
import { deadLetter, readLetterCursor, pageOfLetters, encodeDeadLetter } from './dead-letter-json.js';

const deadLetterList = z.object({ dead_letters: z.array(deadLetter), next_cursor: nextCursor });
export const redelivery = z.object({
  run_id: z.string(),
  ...taskNames,
  agent_id: z.string(),
});

export const AGAIN = flagQuery('Even if it was redelivered before');

/** A tenant's runs that used up their attempts. Their messages can be delivered again. */
@Controller('v1/dead-letters')
export class DeadLettersController {
  constructor(private readonly deadLetters: DeadLetters) {}

  @Describe({
    id: 'listDeadLetters',
    summary: 'Lists runs that used up their attempts, the latest first',
    answer: deadLetterList,
  })
  @RequireScope(...OPERATIONS.listTasks.scopes)
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof deadLetterList>> {
    const caller = callerOf(request);
    const found = await this.deadLetters.list(caller, limit + 1, readLetterCursor(cursor));
    const { page, nextCursor } = pageOfLetters(found, limit);
    return { dead_letters: page.map(encodeDeadLetter), next_cursor: nextCursor };
  }

  @Describe({
    id: 'redeliverDeadLetter',
    summary: 'Sends the message of a dead run again, as a new task',
    answer: redelivery,
  })
  @RequireScope(...OPERATIONS.sendMessage.scopes)
  @Post(':runId/redeliver')
  @HttpCode(201)
  async redeliver(
    @Param('runId') runId: string,
    @Req() request: FastifyRequest,
    @Query('again', AGAIN) isAgain: boolean,
  ): Promise<z.infer<typeof redelivery>> {
    const caller = callerOf(request);
    logContextOf(request).runId = runId;
    const by = actorOf(request);
    const redelivered = await this.deadLetters.redeliver(caller.tenantId, runId, isAgain, caller, by);
    if (!redelivered.ok) throw refusalOf(redelivered);
    return { run_id: runId, ...namesOfTask(redelivered.taskId), agent_id: redelivered.letter.agentId };
  }
}
