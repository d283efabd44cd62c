import { OPERATIONS, decodePageToken, encodePageToken } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { type DeadLetter, DeadLetters, refusalOf } from '@baton/tasks';
import { Controller, Get, HttpCode, Param, Post, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { actorOf } from '../../access/actor.js';
import { RequireScope } from '../../access/access.guard.js';
import { logContextOf } from '../../http/requests.js';
import { readFlag, readLimit } from '../query.js';

/** A tenant's runs that used up their attempts. Their messages can be delivered again. */
@Controller('v1/dead-letters')
export class DeadLettersController {
  constructor(private readonly deadLetters: DeadLetters) {}

  /** The latest first: `{dead_letters, next_cursor}`; the cursor is null on the last page. */
  @RequireScope(...OPERATIONS.listTasks.scopes)
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit') limitText?: string,
    @Query('cursor') cursor?: string,
  ): Promise<Record<string, unknown>> {
    const caller = callerOf(request);
    const limit = readLimit(limitText);
    const position = cursor ? decodePageToken(cursor, 'cursor') : undefined;
    const after = position && { diedAt: position.statusAt, runId: position.taskId };
    const found = await this.deadLetters.list(caller, limit + 1, after);
    const page = found.slice(0, limit);
    const last = found.length > limit ? page.at(-1) : undefined;
    return {
      dead_letters: page.map(encodeDeadLetter),
      next_cursor: last ? encodePageToken({ statusAt: last.diedAt, taskId: last.runId }) : null,
    };
  }

  /** 201 with the new task. Refused if it was redelivered before, unless `?again=true`. */
  @RequireScope(...OPERATIONS.sendMessage.scopes)
  @Post(':runId/redeliver')
  @HttpCode(201)
  async redeliver(
    @Param('runId') runId: string,
    @Req() request: FastifyRequest,
    @Query('again') again?: string,
  ): Promise<Record<string, unknown>> {
    const caller = callerOf(request);
    logContextOf(request).runId = runId;
    const isAgain = readFlag('again', again);
    const by = actorOf(request);
    const redelivered = await this.deadLetters.redeliver(caller.tenantId, runId, isAgain, caller, by);
    if (!redelivered.ok) throw refusalOf(redelivered);
    return { run_id: runId, request_id: redelivered.taskId, agent_id: redelivered.letter.agentId };
  }
}

const encodeDeadLetter = (letter: DeadLetter): Record<string, unknown> => ({
  run_id: letter.runId,
  request_id: letter.taskId,
  agent_id: letter.agentId,
  reason: letter.reason,
  attempts: letter.attempts,
  died_at: letter.diedAt.toISOString(),
  redelivered_at: letter.redeliveredAt?.toISOString() ?? null,
  redelivered_as: letter.redeliveredAt && letter.redeliveredTaskId,
});
