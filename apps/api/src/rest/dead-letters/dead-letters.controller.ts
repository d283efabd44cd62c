import { OPERATIONS, decodePageToken, encodePageToken } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { type DeadLetter, DeadLetters, refusalOf } from '@baton/tasks';
import { Controller, Get, HttpCode, Param, Post, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { actorOf } from '../../access/actor.js';
import { RequireScope } from '../../access/access.guard.js';
import { logContextOf } from '../../http/requests.js';
import { flagQuery } from '../../openapi/query-pipe.js';
import { Describe } from '../../openapi/route.js';
import { timeSchema } from '../../openapi/schemas.js';
import { CURSOR, LIMIT, nextCursor, cutPage } from '../paging.js';
import { namesOfTask, taskNames } from '../task-names.js';

export const deadLetter = z
  .object({
    run_id: z.string(),
    ...taskNames,
    agent_id: z.string(),
    reason: z.string(),
    attempts: z.int(),
    died_at: timeSchema,
    redelivered_at: timeSchema.nullable(),
    redelivered_as: z.string().nullable().describe('The task of the last redelivery'),
  })
  .meta({ id: 'DeadLetter' });
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

/** The dead letter after which the page begins. Throws `invalid-params`. */
export function readLetterCursor(cursor: string | undefined) {
  const position = cursor ? decodePageToken(cursor, 'cursor') : undefined;
  return position && { diedAt: position.statusAt, runId: position.taskId };
}

/** @param found one more than the page has, if there are more */
export function pageOfLetters<T extends DeadLetter>(found: readonly T[], limit: number) {
  const { page, last } = cutPage(found, limit);
  const nextCursor = last ? encodePageToken({ statusAt: last.diedAt, taskId: last.runId }) : null;
  return { page, nextCursor };
}

export const encodeDeadLetter = (letter: DeadLetter): z.infer<typeof deadLetter> => ({
  run_id: letter.runId,
  ...namesOfTask(letter.taskId),
  agent_id: letter.agentId,
  reason: letter.reason,
  attempts: letter.attempts,
  died_at: letter.diedAt.toISOString(),
  redelivered_at: letter.redeliveredAt?.toISOString() ?? null,
  redelivered_as: letter.redeliveredAt && letter.redeliveredTaskId,
});
