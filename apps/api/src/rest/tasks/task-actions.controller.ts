import { OPERATIONS, parseFields, ProtocolError } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { FirstRequests, ParkedTasks, TaskForks } from '@baton/tasks';
import { Controller, HttpCode, Param, Post, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { RequireScope, RequireScopeToo } from '../../access/route-access.js';
import { actorOf } from '../../access/actor.js';
import { AgentFinder } from '../../core/agent-finder.js';
import { CallRunner } from '../../core/call-runner.js';
import { BodyReader } from '../../http/body-reader.js';
import { Describe } from '../../openapi/route.js';
import { decodeMessageBody } from '../message-body.js';
import {
  cancelAnswer,
  cancelRefusal,
  continuation,
  forkAnswer,
  forkBody,
  resumeAnswer,
  sentAgain,
} from './task-actions-json.js';
import { TaskCallResolver } from './task-call-resolver.js';
import { encodeTaskSummary } from './task-summary-json.js';

/** What a caller does with a task: cancel, resume, send its message again, continue it after a failure, fork it. */
@Controller('v1/tasks')
export class TaskActionsController {
  constructor(
    private readonly calls: TaskCallResolver,
    private readonly finder: AgentFinder,
    private readonly runner: CallRunner,
    private readonly firstRequests: FirstRequests,
    private readonly parked: ParkedTasks,
    private readonly forks: TaskForks,
    private readonly bodies: BodyReader,
  ) {}

  @Describe({
    id: 'cancelTask',
    summary: 'Cancels the task. 404 with the reason if it cannot be canceled',
    answer: cancelAnswer,
    otherAnswers: { 404: cancelRefusal },
  })
  @RequireScope(...OPERATIONS.cancelTask.scopes)
  @Post(':id/cancel')
  @HttpCode(200)
  async cancel(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof cancelAnswer | typeof cancelRefusal>> {
    try {
      const exchange = { request, reply };
      const call = await this.calls.resolve('cancelTask', id, exchange);
      const asked = { tenant: '', id, metadata: undefined };
      await this.runner.run({ operation: 'cancelTask', request: asked }, call, exchange);
      return { task_id: id, cancelled: true };
    } catch (error) {
      if (!(error instanceof ProtocolError) || !NOT_CANCELED.has(error.kind)) throw error;
      reply.status(404);
      return { task_id: id, cancelled: false, reason: error.message };
    }
  }

  @Describe({
    id: 'resumeTask',
    summary: 'Resumes a parked task with the present code of its agent. 409 if it is not parked',
    answer: resumeAnswer,
  })
  @RequireScope(...OPERATIONS.cancelTask.scopes)
  @Post(':id/resume')
  @HttpCode(200)
  async resume(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof resumeAnswer>> {
    const call = await this.calls.resolve('cancelTask', id, { request, reply });
    if (await this.parked.resume(call, id)) return { task_id: id, resumed: true };
    throw new ProtocolError('conflict', 'The task is not parked: it continues by itself, or has ended');
  }

  @Describe({
    id: 'sendTaskAgain',
    summary:
      'Sends the first message of the task again, with the metadata and output modes of its request, as a new task of the caller in the same context',
    answer: sentAgain,
  })
  @RequireScope(...OPERATIONS.sendMessage.scopes)
  @Post(':id/send-again')
  @HttpCode(201)
  async sendAgain(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof sentAgain>> {
    const exchange = { request, reply };
    const call = await this.calls.resolve('getTask', id, exchange);
    const { agent } = call;
    if (agent.status)
      throw new ProtocolError('agent-not-found', `the agent "${agent.slug}" is ${agent.status}`);
    const asked = { tenant: '', id, historyLength: undefined };
    const task = await this.runner.run({ operation: 'getTask', request: asked }, call, exchange);
    const { message, details } = await this.firstRequests.repeatFor(call.tenantId, task);
    // The stored push config has no secrets, so the new task has no receiver.
    const acceptedOutputModes = details?.configuration?.acceptedOutputModes ?? [];
    const sent = await this.runner.run(
      {
        operation: 'sendMessage',
        request: {
          tenant: '',
          message,
          configuration: { ...AT_ONCE, acceptedOutputModes },
          metadata: details?.metadata,
        },
      },
      { ...call, access: OPERATIONS.sendMessage.access },
      exchange,
    );
    if (sent.$case !== 'task') throw new Error('a send that does not wait is answered with its task');
    return { ...encodeTaskSummary(sent.value, agent.id), again_of: id };
  }

  @Describe({
    id: 'continueTask',
    summary:
      'Continues a failed task at the point of failure, with the newest version of its agent, as a new task with the same owner and context. ' +
      'Finished steps, answers of models and results of tools are taken over. A repeated call answers with the same task',
    answer: continuation,
  })
  @RequireScope(...OPERATIONS.sendMessage.scopes)
  @Post(':id/continue')
  @HttpCode(201)
  async continueTask(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof continuation>> {
    const exchange = { request, reply };
    await this.calls.resolveSeen(id, exchange);
    const { taskId, agent } = await this.forks.continueFailed(callerOf(request), id, actorOf(request));
    const call = await this.calls.resolve('getTask', taskId, exchange);
    const asked = { tenant: '', id: taskId, historyLength: 0 };
    const task = await this.runner.run({ operation: 'getTask', request: asked }, call, exchange);
    return { ...encodeTaskSummary(task, agent.id), continues: id };
  }

  @Describe({
    id: 'forkTask',
    summary:
      'Makes a new task of the caller from any task: with its history and its journal up to an entry, and with another message or agent if ' +
      'they are given. The context is the same. With `dry_run` it only says what would be done again',
    body: forkBody,
    answer: forkAnswer,
  })
  @RequireScope(...OPERATIONS.sendMessage.scopes)
  @RequireScopeToo('agents:write')
  @Post(':id/fork')
  @HttpCode(201)
  async fork(
    @Param('id') id: string,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<z.infer<typeof forkAnswer>> {
    const caller = callerOf(request);
    const body = parseFields(forkBody, await this.bodies.json(request), '', 'the body');
    const message = decodeMessageBody(body.text, body.message);
    await this.calls.resolveSeen(id, { request, reply });
    const agentId = await this.finder.idOf(caller, body.agent);
    const { taskId, at, doneAgain } = await this.forks.fork(caller, id, {
      at: body.at,
      parts: message?.parts,
      agentId,
      isDryRun: body.dry_run,
    });
    return { task_id: taskId ?? null, fork_of: id, at, done_again: doneAgain };
  }
}

const AT_ONCE = {
  taskPushNotificationConfig: undefined,
  historyLength: 0,
  returnImmediately: true,
};

const NOT_CANCELED: ReadonlySet<string> = new Set(['task-not-found', 'task-not-cancelable']);
