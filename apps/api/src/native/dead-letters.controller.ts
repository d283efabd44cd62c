import { decodePageToken, encodePageToken } from '@baton/a2a';
import type { DeadLetter } from '@baton/database';
import { BearerGuard, callerOf } from '@baton/identity';
import { DeadLetters, refusalOf } from '@baton/tasks';
import { Controller, Get, HttpCode, Param, Post, Query, Req, UseGuards } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { requireScopeFor } from '../a2a/scopes.js';
import { logContextOf } from '../http/log-context.js';
import type { NativePath } from './native-path.js';
import { readFlag } from './read-flag.js';
import { readLimit } from './read-limit.js';

/** Every path below, with its method; others are refused. */
export const DEAD_LETTER_PATHS: readonly NativePath[] = [
  ['/v1/dead-letters', 'GET'],
  ['/v1/dead-letters/:runId/redeliver', 'POST'],
];

/** A tenant's runs that used up their attempts, and how to say their messages again. */
@Controller('v1/dead-letters')
@UseGuards(BearerGuard)
export class DeadLettersController {
  constructor(private readonly deadLetters: DeadLetters) {}

  /** The latest death first: `{dead_letters, next_cursor}`; the cursor is null on the last page. */
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit') limitText?: string,
    @Query('cursor') cursor?: string,
  ): Promise<Record<string, unknown>> {
    const { tenantId, scopes } = callerOf(request);
    requireScopeFor('listTasks', scopes);
    const limit = readLimit(limitText);
    const position = cursor ? decodePageToken(cursor) : undefined;
    const after = position && { diedAt: position.statusAt, runId: position.taskId };
    const found = await this.deadLetters.list(tenantId, limit + 1, after);
    const page = found.slice(0, limit);
    const last = found.length > limit ? page.at(-1) : undefined;
    return {
      dead_letters: page.map(encodeDeadLetter),
      next_cursor: last ? encodePageToken({ statusAt: last.diedAt, taskId: last.runId }) : null,
    };
  }

  /** 201 with the new task. Refused if it was redelivered before, unless `?again=true`. */
  @Post(':runId/redeliver')
  @HttpCode(201)
  async redeliver(
    @Param('runId') runId: string,
    @Req() request: FastifyRequest,
    @Query('again') again?: string,
  ): Promise<Record<string, unknown>> {
    const { tenantId, scopes } = callerOf(request);
    Object.assign(logContextOf(request), { tenantId, runId });
    requireScopeFor('sendMessage', scopes);
    const redelivered = await this.deadLetters.redeliver(tenantId, runId, readFlag('again', again));
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
