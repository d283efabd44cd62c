import { Environment } from '@baton/config';
import { callerOf } from '@baton/identity';
import { SpendingCaps } from '@baton/tasks';
import { Controller, Delete, Get, HttpCode, Param, Put, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { actorOf } from '../../access/actor.js';
import { RequireScope } from '../../access/route-access.js';
import { BodyReader } from '../../http/body-reader.js';
import { Describe } from '../../openapi/route.js';
import { capAnswer, capList, decodeCap, encodeCap, newCap } from './cap-json.js';

/** What the tenant, its agents, callers, tokens, schedules and tasks may spend. */
@Controller('v1/spending-caps')
export class SpendingCapsController {
  constructor(
    private readonly caps: SpendingCaps,
    private readonly bodies: BodyReader,
    private readonly environment: Environment,
  ) {}

  @Describe({
    id: 'listSpendingCaps',
    summary: 'Lists the spending caps, and what is used of them',
    answer: capList,
  })
  @RequireScope('tasks:read')
  @Get()
  async list(@Req() request: FastifyRequest): Promise<z.infer<typeof capList>> {
    const caps = await this.caps.list(callerOf(request));
    return { currency: this.environment.modelPricesCurrency, caps: caps.map(encodeCap) };
  }

  @Describe({
    id: 'setSpendingCap',
    summary: 'Sets a spending cap, in place of the one with the same `of`, `subject` and `period`',
    body: newCap,
    answer: capAnswer,
  })
  @RequireScope('admin')
  @Put()
  async set(@Req() request: FastifyRequest): Promise<z.infer<typeof capAnswer>> {
    const spec = decodeCap(await this.bodies.json(request));
    return encodeCap(await this.caps.set(callerOf(request), spec, actorOf(request)));
  }

  @Describe({ id: 'deleteSpendingCap', summary: 'Deletes a spending cap, with what was counted' })
  @RequireScope('admin')
  @Delete(':id')
  @HttpCode(204)
  async remove(@Param('id') id: string, @Req() request: FastifyRequest): Promise<void> {
    await this.caps.remove(callerOf(request), id, actorOf(request));
  }
}
