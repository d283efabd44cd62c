import { OPERATIONS, requireScope } from '@baton/a2a';
import { callerOf } from '@baton/identity';
import { Schedules } from '@baton/tasks';
import { Controller, Delete, Get, HttpCode, Param, Patch, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { actorOf } from '../../access/actor.js';
import { RequireScope, RequireScopeToo } from '../../access/route-access.js';
import { BodyReader } from '../../http/body-reader.js';
import { logContextOf } from '../../http/requests.js';
import { Describe } from '../../openapi/route.js';
import { CURSOR, LIMIT, oneMore, pageOf, readPage } from '../paging.js';
import {
  decodeNewSchedule,
  decodeSchedulePatch,
  encodeSchedule,
  encodeScheduleWithMessage,
  newSchedule,
  scheduleAnswer,
  scheduleList,
  schedulePatch,
  scheduleRun,
} from './schedule-json.js';
import { namesOfTask } from '../task-names.js';

type ScheduleAnswer = z.infer<typeof scheduleAnswer>;

/** Throws `forbidden` for a caller who may not send messages itself: a schedule sends them for it. */
const assertMaySend = (request: FastifyRequest): void =>
  requireScope(OPERATIONS.sendMessage.scopes, callerOf(request).scopes);

/** A tenant's schedules. Each is named by its id or its name. */
@Controller('v1/schedules')
export class SchedulesController {
  constructor(
    private readonly schedules: Schedules,
    private readonly bodies: BodyReader,
  ) {}

  @Describe({ id: 'listSchedules', summary: 'Lists the schedules by name', answer: scheduleList })
  @RequireScope('tasks:read', 'schedules:write')
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit', LIMIT) limit: number,
    @Query('cursor', CURSOR) cursor: string | undefined,
  ): Promise<z.infer<typeof scheduleList>> {
    const asked = readPage(limit, cursor);
    const found = await this.schedules.page(callerOf(request), oneMore(asked));
    const { page, nextCursor } = pageOf(found, ({ name }) => name, asked);
    return { schedules: page.map(encodeSchedule), next_cursor: nextCursor };
  }

  @Describe({
    id: 'createSchedule',
    summary: 'Creates a schedule',
    body: newSchedule,
    answer: scheduleAnswer,
    answerHeaders: ['Location'],
  })
  @RequireScope('schedules:write')
  @RequireScopeToo(...OPERATIONS.sendMessage.scopes)
  @Post()
  async create(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<ScheduleAnswer> {
    const spec = decodeNewSchedule(await this.bodies.json(request));
    const made = await this.schedules.create(callerOf(request), spec, actorOf(request));
    reply.status(201).header('location', `/v1/schedules/${made.id}`);
    return encodeScheduleWithMessage(made);
  }

  @Describe({ id: 'getSchedule', summary: 'Shows a schedule', answer: scheduleAnswer })
  @RequireScope('tasks:read', 'schedules:write')
  @Get(':id')
  async get(@Param('id') id: string, @Req() request: FastifyRequest): Promise<ScheduleAnswer> {
    return encodeScheduleWithMessage(await this.schedules.find(callerOf(request), id));
  }

  @Describe({
    id: 'changeSchedule',
    summary: 'Changes the given members of a schedule; `{"paused": true}` pauses it',
    body: schedulePatch,
    answer: scheduleAnswer,
  })
  @RequireScope('schedules:write')
  @Patch(':id')
  async change(@Param('id') id: string, @Req() request: FastifyRequest): Promise<ScheduleAnswer> {
    const patch = decodeSchedulePatch(await this.bodies.json(request));
    const { paused, ...others } = patch;
    const onlyPauses = paused === true && Object.keys(others).length === 0;
    if (!onlyPauses) assertMaySend(request);
    const by = actorOf(request);
    return encodeScheduleWithMessage(await this.schedules.change(callerOf(request), id, patch, by));
  }

  @Describe({ id: 'deleteSchedule', summary: 'Deletes a schedule' })
  @RequireScope('schedules:write')
  @Delete(':id')
  @HttpCode(204)
  async remove(@Param('id') id: string, @Req() request: FastifyRequest): Promise<void> {
    await this.schedules.remove(callerOf(request), id, actorOf(request));
  }

  @Describe({ id: 'runSchedule', summary: 'Makes a task now', answer: scheduleRun })
  @RequireScope('schedules:write')
  @RequireScopeToo(...OPERATIONS.sendMessage.scopes)
  @Post(':id/run')
  @HttpCode(201)
  async run(@Param('id') id: string, @Req() request: FastifyRequest): Promise<z.infer<typeof scheduleRun>> {
    const { schedule, taskId } = await this.schedules.run(callerOf(request), id, actorOf(request));
    logContextOf(request).taskId = taskId;
    return { schedule_id: schedule.id, ...namesOfTask(taskId) };
  }
}
