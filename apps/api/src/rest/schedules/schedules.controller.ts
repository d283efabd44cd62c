import { callerOf } from '@baton/identity';
import { Schedules } from '@baton/tasks';
import { Controller, Delete, Get, HttpCode, Param, Patch, Post, Query, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { actorOf } from '../../access/actor.js';
import { RequireScope } from '../../access/access.guard.js';
import { BodyReader } from '../../http/body.js';
import { logContextOf } from '../../http/requests.js';
import { pageOf, readLimit } from '../query.js';
import {
  decodeNewSchedule,
  decodeSchedulePatch,
  encodeSchedule,
  encodeScheduleWithMessage,
} from './schedule-json.js';

type Json = Record<string, unknown>;

/** A tenant's schedules. Each is named by its id or its name. */
@Controller('v1/schedules')
export class SchedulesController {
  constructor(
    private readonly schedules: Schedules,
    private readonly bodies: BodyReader,
  ) {}

  /** By name, without their messages: `{schedules, next_cursor}`; the cursor is null on the last page. */
  @RequireScope('tasks:read', 'schedules:write')
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit') limit?: string,
    @Query('cursor') cursor?: string,
  ): Promise<Json> {
    const all = await this.schedules.list(callerOf(request));
    const { page, nextCursor } = pageOf(all, ({ name }) => name, { limit: readLimit(limit), cursor });
    return { schedules: page.map(encodeSchedule), next_cursor: nextCursor };
  }

  /** 201 with the schedule. */
  @RequireScope('schedules:write')
  @Post()
  async create(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Json> {
    const spec = decodeNewSchedule(await this.bodies.json(request));
    const made = await this.schedules.create(callerOf(request), spec, actorOf(request));
    reply.status(201).header('location', `/v1/schedules/${made.id}`);
    return encodeScheduleWithMessage(made);
  }

  @RequireScope('tasks:read', 'schedules:write')
  @Get(':id')
  async get(@Param('id') id: string, @Req() request: FastifyRequest): Promise<Json> {
    return encodeScheduleWithMessage(await this.schedules.find(callerOf(request), id));
  }

  /** Changes only the given members; `{"paused": true}` pauses, `{"paused": false}` resumes. */
  @RequireScope('schedules:write')
  @Patch(':id')
  async change(@Param('id') id: string, @Req() request: FastifyRequest): Promise<Json> {
    const patch = decodeSchedulePatch(await this.bodies.json(request));
    const by = actorOf(request);
    return encodeScheduleWithMessage(await this.schedules.change(callerOf(request), id, patch, by));
  }

  @RequireScope('schedules:write')
  @Delete(':id')
  @HttpCode(204)
  async remove(@Param('id') id: string, @Req() request: FastifyRequest): Promise<void> {
    await this.schedules.remove(callerOf(request), id, actorOf(request));
  }

  /** 201 with the new task. */
  @RequireScope('schedules:write')
  @Post(':id/run')
  @HttpCode(201)
  async run(@Param('id') id: string, @Req() request: FastifyRequest): Promise<Json> {
    const { schedule, taskId } = await this.schedules.run(callerOf(request), id, actorOf(request));
    logContextOf(request).taskId = taskId;
    return { schedule_id: schedule.id, request_id: taskId };
  }
}
