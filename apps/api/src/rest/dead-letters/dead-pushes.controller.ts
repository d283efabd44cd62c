import { OPERATIONS } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { DeadPushes } from '@baton/tasks';
import { Controller, Get, HttpCode, Param, Post, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { actorOf } from '../../access/actor.js';
import { RequireScope } from '../../access/route-access.js';
import { textQuery } from '../../openapi/query-pipe.js';
import { Describe } from '../../openapi/route.js';
import { CURSOR, LIMIT, nextCursor } from '../paging.js';
import { namesOfTask, taskNames } from '../task-names.js';
import { deadPush, pageOfPushes, encodeDeadPush } from './dead-push-json.js';

const deadPushList = z.object({ dead_pushes: z.array(deadPush), next_cursor: nextCursor });
export const pushRedelivery = z.object({
  ...taskNames,
  configs: z.array(z.string()).describe('The push configs that are delivered again'),
});

export const CONFIG = textQuery('Only this push config. Left out: all of the task that were given up');

/** Push configs that were given up. They can be delivered again, after the last delivered event. */
@Controller('v1/dead-pushes')
export class DeadPushesController {
  constructor(private readonly deadPushes: DeadPushes) {}

  @Describe({
    id: 'listDeadPushes',
    summary: 'Lists push configs that were given up, the latest first',
    answer: deadPushList,
  })
  @RequireScope(...OPERATIONS.listTasks.scopes)
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof deadPushList>> {
    const { page, nextCursor } = await pageOfPushes(limit, cursor, (wanted) =>
      this.deadPushes.list(callerOf(request), wanted),
    );
    return { dead_pushes: page.map(encodeDeadPush), next_cursor: nextCursor };
  }

  @Describe({
    id: 'redeliverDeadPushes',
    summary: 'Delivers the given-up push configs of a task again, after the last delivered event',
    answer: pushRedelivery,
  })
  @RequireScope(...OPERATIONS.sendMessage.scopes)
  @Post(':id/redeliver')
  @HttpCode(200)
  async redeliver(
    @Param('id') taskId: string,
    @Req() request: FastifyRequest,
    @Query('config', CONFIG) configId: string | undefined,
  ): Promise<z.infer<typeof pushRedelivery>> {
    const caller = callerOf(request);
    const configs = await this.deadPushes.redeliver(caller, taskId, configId, actorOf(request));
    return { ...namesOfTask(taskId), configs };
  }
}
