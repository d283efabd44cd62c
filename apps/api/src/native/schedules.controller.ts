import type { Scope } from '@baton/a2a';
import { BearerGuard, callerOf } from '@baton/identity';
import { Schedules } from '@baton/tasks';
import {
  Controller,
  Delete,
  Get,
  HttpCode,
  Param,
  Patch,
  Post,
  Query,
  Req,
  Res,
  UseGuards,
} from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { requireScope } from '../a2a/scopes.js';
import { logContextOf } from '../http/log-context.js';
import { JsonBodies } from './json-bodies.js';
import type { NativePath } from './native-path.js';
import { pageOf } from './page.js';
import { readLimit } from './read-limit.js';
import { decodeNewSchedule, decodeSchedulePatch } from './schedule-body.js';
import { encodeSchedule, encodeScheduleWithMessage } from './schedule-json.js';

export const SCHEDULE_PATHS: readonly NativePath[] = [
  ['/v1/schedules', 'GET', 'POST'],
  ['/v1/schedules/:id', 'GET', 'PATCH', 'DELETE'],
  ['/v1/schedules/:id/run', 'POST'],
];

const READ: readonly Scope[] = ['tasks:read', 'schedules:write'];
const WRITE: readonly Scope[] = ['schedules:write'];

type Json = Record<string, unknown>;

/** A tenant's schedules. Each is named by its id or its name. */
@Controller('v1/schedules')
@UseGuards(BearerGuard)
export class SchedulesController {
  constructor(
    private readonly schedules: Schedules,
    private readonly bodies: JsonBodies,
  ) {}

  /** By name, without their messages: `{schedules, next_cursor}`; the cursor is null on the last page. */
  @Get()
  async list(
    @Req() request: FastifyRequest,
    @Query('limit') limit?: string,
    @Query('cursor') cursor?: string,
  ): Promise<Json> {
    const all = await this.schedules.list(tenantWith(READ, request));
    const { page, nextCursor } = pageOf(all, ({ name }) => name, { limit: readLimit(limit), cursor });
    return { schedules: page.map(encodeSchedule), next_cursor: nextCursor };
  }

  /** 201 with the schedule. */
  @Post()
  async create(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<Json> {
    const tenantId = tenantWith(WRITE, request);
    const made = await this.schedules.create(tenantId, decodeNewSchedule(await this.bodies.read(request)));
    reply.status(201).header('location', `/v1/schedules/${made.id}`);
    return encodeScheduleWithMessage(made);
  }

  @Get(':id')
  async get(@Param('id') id: string, @Req() request: FastifyRequest): Promise<Json> {
    return encodeScheduleWithMessage(await this.schedules.find(tenantWith(READ, request), id));
  }

  /** Changes what is given, and leaves the rest; `{"paused": true}` pauses, `{"paused": false}` resumes. */
  @Patch(':id')
  async change(@Param('id') id: string, @Req() request: FastifyRequest): Promise<Json> {
    const tenantId = tenantWith(WRITE, request);
    const patch = decodeSchedulePatch(await this.bodies.read(request));
    return encodeScheduleWithMessage(await this.schedules.change(tenantId, id, patch));
  }

  @Delete(':id')
  @HttpCode(204)
  async remove(@Param('id') id: string, @Req() request: FastifyRequest): Promise<void> {
    await this.schedules.remove(tenantWith(WRITE, request), id);
  }

  /** 201 with the new task. */
  @Post(':id/run')
  @HttpCode(201)
  async run(@Param('id') id: string, @Req() request: FastifyRequest): Promise<Json> {
    const { schedule, taskId } = await this.schedules.run(tenantWith(WRITE, request), id);
    logContextOf(request).taskId = taskId;
    return { schedule_id: schedule.id, request_id: taskId };
  }
}

/** Throws `forbidden` unless the caller has one of the scopes. */
function tenantWith(enough: readonly Scope[], request: FastifyRequest): string {
  const { tenantId, scopes } = callerOf(request);
  requireScope(enough, scopes);
  logContextOf(request).tenantId = tenantId;
  return tenantId;
}
