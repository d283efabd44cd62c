import { isUuid, OPERATIONS, ProtocolError } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { type DeadPush, DeadPushes } from '@baton/tasks';
import { Controller, Get, HttpCode, Param, Post, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { actorOf } from '../../access/actor.js';
import { RequireScope } from '../../access/access.guard.js';
import { textQuery } from '../../openapi/query-pipe.js';
import { Describe } from '../../openapi/route.js';
import { timeSchema } from '../../openapi/schemas.js';
import { CURSOR, LIMIT, nextCursor, pageOf, readPage } from '../paging.js';
import { namesOfTask, taskNames } from '../task-names.js';

export const deadPush = z
  .object({
    ...taskNames,
    config_id: z.string().describe('The id of the push config'),
    agent_id: z.string(),
    receiver: z.string().describe('Origin of its URL'),
    webhook: z.boolean().describe('Whether a webhook of the tenant has made it'),
    status: z.int().nullable().describe('HTTP status of the last answer. Null: there was none'),
    error: z.string().nullable(),
    failures: z.int().describe('Tries that have failed in a row'),
    failing_since: timeSchema,
    waiting: z.int().describe('Events that it has not received'),
  })
  .meta({ id: 'DeadPush' });
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

type DeadPushPosition = Pick<DeadPush, 'failingSince' | 'taskId' | 'configId'>;

/** The page that a request asks for. Throws `invalid-params`. */
export async function pageOfPushes<T extends DeadPush>(
  limit: number,
  cursor: string | undefined,
  list: (page: { limit: number; after: DeadPushPosition | undefined }) => Promise<T[]>,
) {
  const request = readPage(limit, cursor);
  const after = request.after === undefined ? undefined : readPosition(request.after);
  const found = await list({ limit: limit + 1, after });
  return pageOf(found, writePosition, request);
}

const writePosition = ({ failingSince, taskId, configId }: DeadPushPosition): string =>
  `${failingSince.toISOString()} ${taskId} ${configId}`;

function readPosition(key: string): DeadPushPosition {
  const [at = '', taskId = '', ...id] = key.split(' ');
  const position = { failingSince: new Date(at), taskId, configId: id.join(' ') };
  // Postgres does not have all years that JavaScript writes with a sign.
  const isTime = /^\d{4}-/.test(at) && !Number.isNaN(position.failingSince.getTime());
  if (isTime && isUuid(taskId) && writePosition(position) === key) return position;
  throw ProtocolError.invalidParams('cursor', 'must be the next_cursor of an earlier page, or be left out');
}

export const encodeDeadPush = (push: DeadPush): z.infer<typeof deadPush> => ({
  ...namesOfTask(push.taskId),
  config_id: push.configId,
  agent_id: push.agentId,
  receiver: push.receiver,
  webhook: push.isWebhook,
  status: push.status,
  error: push.error,
  failures: push.failures,
  failing_since: push.failingSince.toISOString(),
  waiting: push.waiting,
});
