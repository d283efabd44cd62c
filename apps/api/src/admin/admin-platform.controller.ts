import { Message } from '@baton/a2a';
import { OPERATOR_ROLES } from '@baton/identity';
import { DeadPushes, type DeadLetter, PlatformService, OperatorLetters, RUN_CLASSES } from '@baton/tasks';
import { Controller, Get, HttpCode, Param, Post, Query, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { operatorActorOf, operatorOf } from '../access/actor.js';
import { OperatorOnly, OperatorRoles } from '../access/route-access.js';
import { OnManagementPort } from '../management/management-port.js';
import { textQuery } from '../openapi/query-pipe.js';
import { Describe } from '../openapi/route.js';
import { a2aSchema, timeSchema } from '../openapi/schemas.js';
import { encodeWorkerFailure, workerFailure } from '../rest/agents/agent-json.js';
import { AGAIN, redelivery } from '../rest/dead-letters/dead-letters.controller.js';
import {
  deadLetter,
  encodeDeadLetter,
  pageOfLetters,
  readLetterCursor,
} from '../rest/dead-letters/dead-letter-json.js';
import { CONFIG, pushRedelivery } from '../rest/dead-letters/dead-pushes.controller.js';
import { deadPush, encodeDeadPush, pageOfPushes } from '../rest/dead-letters/dead-push-json.js';
import { CURSOR, LIMIT, nextCursor } from '../rest/paging.js';
import { namesOfTask, taskNames } from '../rest/task-names.js';
import { agentError, encodeAgentError } from './agent-error-json.js';

export const TENANT = textQuery('Slug of the tenant; left out = all');
const workerList = z.object({
  workers: z.array(
    z.object({
      id: z.string(),
      host: z.string(),
      pid: z.int(),
      concurrency: z.int().describe('Maximum number of runs at a time'),
      running: z.int(),
      started_at: timeSchema,
      seen_at: timeSchema.describe('The last heartbeat'),
      alive: z.boolean().describe('Whether it has sent a heartbeat within three times `LEASE_MS`'),
      version: z.string().nullable().describe('Release of Baton. Null: the worker runs an earlier release'),
      memory_bytes: z
        .int()
        .nullable()
        .describe('Resident memory at the last heartbeat. Null: the worker runs an earlier release'),
      load_failures: z.array(workerFailure).describe('Agents in code that it could not load when it started'),
    }),
  ),
});
const queueAnswer = z
  .object({
    classes: z
      .array(
        z.object({
          class: z
            .enum(RUN_CLASSES)
            .describe(
              'Why a run is where it is: it waits for a dispatch slot, backs off after a crash, is queued for a worker, ' +
                'runs, or is suspended until other tasks, a time or a person',
            ),
          runs: z.int().describe('Counted up to 10,000'),
          more: z
            .boolean()
            .describe(
              'Whether there may be more runs than were counted. `waiting` and `backoff` are counted together',
            ),
          oldest_at: timeSchema
            .nullable()
            .describe('When the oldest of them was accepted; of those that were counted if there are more'),
          oldest_seconds: z.number().describe('Age of that run. 0: there is none'),
        }),
      )
      .describe('All classes'),
    oldest_waiting: z
      .object({
        tenant: z.string().describe('Slug of the tenant'),
        ...taskNames,
        accepted_at: timeSchema,
      })
      .nullable()
      .describe('The accepted run that has waited longest for a worker'),
    jobs: z
      .object({ waiting: z.int(), active: z.int() })
      .nullable()
      .describe('Entries of the queue. Null: its server does not answer'),
    dead_letters: z.int().describe('Runs that used up their attempts and were not sent again, up to 10,000'),
    dead_pushes: z.int().describe('Push configs that were given up, up to 10,000'),
    slots: z.int().describe('Runs that the live workers can execute at the same time'),
  })
  .meta({ id: 'Queue' });
const operatorAnswer = z
  .object({
    token: z.object({ id: z.string(), name: z.string(), prefix: z.string(), role: z.enum(OPERATOR_ROLES) }),
    expires_at: timeSchema.nullable().describe('When the token ends. Null: never'),
  })
  .meta({ id: 'Operator' });
const tenantLetter = deadLetter
  .extend({
    tenant: z.string().describe('Slug of the tenant'),
    tenant_id: z.string(),
    owner: z
      .string()
      .nullable()
      .describe('Key of the principal that made the task. Null: an earlier release created the task'),
  })
  .meta({ id: 'TenantDeadLetter' });
const letterList = z.object({ dead_letters: z.array(tenantLetter), next_cursor: nextCursor });
const wholeLetter = tenantLetter.extend({ message: a2aSchema('The message').nullable(), error: agentError });
const tenantPush = deadPush
  .extend({ tenant: z.string().describe('Slug of the tenant'), tenant_id: z.string() })
  .meta({ id: 'TenantDeadPush' });
const pushList = z.object({ dead_pushes: z.array(tenantPush), next_cursor: nextCursor });

/** The operator's token, workers, the queue, and the runs and push configs of all tenants that were given up. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin')
export class AdminPlatformController {
  constructor(
    private readonly platform: PlatformService,
    private readonly letters: OperatorLetters,
    private readonly pushes: DeadPushes,
  ) {}

  @Describe({ id: 'whoami', summary: 'Shows the token of the operator who calls', answer: operatorAnswer })
  @OperatorRoles('read', 'support')
  @Get('whoami')
  whoami(@Req() request: FastifyRequest): z.infer<typeof operatorAnswer> {
    const { id, name, prefix, role, expiresAt } = operatorOf(request);
    return { token: { id, name, prefix, role }, expires_at: expiresAt?.toISOString() ?? null };
  }

  @Describe({
    id: 'getQueue',
    summary:
      'Shows how much work there is and how long it waits, over all tenants, without messages and artifacts',
    answer: queueAnswer,
  })
  @OperatorRoles('read', 'support')
  @Get('queue')
  async showQueue(): Promise<z.infer<typeof queueAnswer>> {
    const { classes, oldestWaiting, jobs, deadLetters, deadPushes, slots } = await this.platform.readQueue();
    return {
      classes: classes.map(({ class: name, runs, more, oldestAt, oldestSeconds }) => ({
        class: name,
        runs,
        more,
        oldest_at: oldestAt?.toISOString() ?? null,
        oldest_seconds: oldestSeconds,
      })),
      oldest_waiting: oldestWaiting && {
        tenant: oldestWaiting.tenant,
        ...namesOfTask(oldestWaiting.taskId),
        accepted_at: oldestWaiting.acceptedAt.toISOString(),
      },
      jobs,
      dead_letters: deadLetters,
      dead_pushes: deadPushes,
      slots,
    };
  }

  @Describe({
    id: 'listWorkers',
    summary: 'Lists the workers that have sent a heartbeat in the last hour',
    answer: workerList,
  })
  @OperatorRoles('read', 'support')
  @Get('workers')
  async listWorkers(): Promise<z.infer<typeof workerList>> {
    const workers = await this.platform.listWorkers();
    return {
      workers: workers.map(({ startedAt, seenAt, isAlive, memoryBytes, loadFailures, ...worker }) => ({
        ...worker,
        started_at: startedAt.toISOString(),
        seen_at: seenAt.toISOString(),
        alive: isAlive,
        memory_bytes: memoryBytes,
        load_failures: loadFailures.map(encodeWorkerFailure),
      })),
    };
  }

  @Describe({
    id: 'listDeadLetters',
    summary: 'Lists runs that used up their attempts, the latest first',
    answer: letterList,
  })
  @OperatorRoles('read')
  @Get('dead-letters')
  async listLetters(
    @Query('tenant', TENANT) slug: string | undefined,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof letterList>> {
    const found = await this.letters.list(slug, { limit: limit + 1, after: readLetterCursor(cursor) });
    const { page, nextCursor } = pageOfLetters(found, limit);
    return { dead_letters: page.map(encodeLetter), next_cursor: nextCursor };
  }

  @Describe({
    id: 'getDeadLetter',
    summary: "Shows a dead run with its message and the error in its agent's code; either may be null",
    answer: wholeLetter,
  })
  @OperatorRoles('read')
  @Get('dead-letters/:runId')
  async showLetter(@Param('runId') runId: string): Promise<z.infer<typeof wholeLetter>> {
    const { message, error, ...letter } = await this.letters.show(runId);
    return {
      ...encodeLetter(letter),
      message: message && (Message.toJSON(message) as Record<string, unknown>),
      error: encodeAgentError(error),
    };
  }

  @Describe({
    id: 'redeliverDeadLetter',
    summary: 'Sends the message of a dead run again, as a new task',
    answer: redelivery,
  })
  @OperatorRoles('support')
  @Post('dead-letters/:runId/redeliver')
  async redeliver(
    @Param('runId') runId: string,
    @Req() request: FastifyRequest,
    @Query('again', AGAIN) isAgain: boolean,
  ): Promise<z.infer<typeof redelivery>> {
    const by = operatorActorOf(request);
    const { taskId, agentId } = await this.letters.redeliver(runId, isAgain, by);
    return { run_id: runId, ...namesOfTask(taskId), agent_id: agentId };
  }

  @Describe({
    id: 'listDeadPushes',
    summary: 'Lists push configs that were given up, the latest first',
    answer: pushList,
  })
  @OperatorRoles('read', 'support')
  @Get('dead-pushes')
  async listPushes(
    @Query('tenant', TENANT) slug: string | undefined,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof pushList>> {
    const { page, nextCursor } = await pageOfPushes(limit, cursor, (wanted) =>
      this.pushes.listOf(slug, wanted),
    );
    const pushes = page.map((push) => ({
      ...encodeDeadPush(push),
      tenant: push.tenant,
      tenant_id: push.tenantId,
    }));
    return { dead_pushes: pushes, next_cursor: nextCursor };
  }

  @Describe({
    id: 'redeliverDeadPushes',
    summary: 'Delivers the given-up push configs of a task again, after the last delivered event',
    answer: pushRedelivery,
  })
  @OperatorRoles('support')
  @Post('dead-pushes/:id/redeliver')
  @HttpCode(200)
  async redeliverPushes(
    @Param('id') taskId: string,
    @Req() request: FastifyRequest,
    @Query('config', CONFIG) configId: string | undefined,
  ): Promise<z.infer<typeof pushRedelivery>> {
    const configs = await this.pushes.redeliverAnywhere(taskId, configId, operatorActorOf(request));
    return { ...namesOfTask(taskId), configs };
  }
}

const encodeLetter = (letter: DeadLetter & { tenant: string }): z.infer<typeof tenantLetter> => ({
  ...encodeDeadLetter(letter),
  tenant: letter.tenant,
  tenant_id: letter.tenantId,
  owner: letter.owner,
});
