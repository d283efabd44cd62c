import { ProtocolError } from '@baton/a2a';
import { Environment } from '@baton/config';
import { CAP_PERIODS, type CapPeriod, SpendingCaps } from '@baton/tasks';
import { Controller, Delete, Get, HttpCode, Param, Put, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { operatorActorOf } from '../access/actor.js';
import { OperatorOnly, OperatorRoles } from '../access/route-access.js';
import { BodyReader } from '../http/body-reader.js';
import { OnManagementPort } from '../management/management-port.js';
import { Describe } from '../openapi/route.js';
import {
  capAnswer,
  capList,
  decodeOperatorCap,
  encodeCap,
  operatorCap,
} from '../rest/spending-caps/cap-json.js';

/** What a tenant may spend: caps that it cannot change. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin/tenants/:tenant/spending-caps')
export class AdminSpendingCapsController {
  constructor(
    private readonly caps: SpendingCaps,
    private readonly bodies: BodyReader,
    private readonly environment: Environment,
  ) {}

  @Describe({
    id: 'listTenantSpendingCaps',
    summary: 'Lists the spending caps that operators have set for a tenant, and what is used of them',
    answer: capList,
  })
  @OperatorRoles('read', 'support')
  @Get()
  async list(@Param('tenant') slug: string): Promise<z.infer<typeof capList>> {
    const caps = await this.caps.ofOperator(slug);
    return { currency: this.environment.modelPricesCurrency, caps: caps.map(encodeCap) };
  }

  @Describe({
    id: 'setTenantSpendingCap',
    summary: 'Sets what a tenant may spend in a day, week or month. The tenant cannot change it',
    body: operatorCap,
    answer: capAnswer,
  })
  @Put(':period')
  async set(
    @Param('tenant') slug: string,
    @Param('period') period: string,
    @Req() request: FastifyRequest,
  ): Promise<z.infer<typeof capAnswer>> {
    const micros = decodeOperatorCap(await this.bodies.ofOperator(request));
    return encodeCap(await this.caps.setByOperator(slug, periodOf(period), micros, operatorActorOf(request)));
  }

  @Describe({
    id: 'deleteTenantSpendingCap',
    summary: 'Deletes a spending cap that operators have set for a tenant',
  })
  @Delete(':period')
  @HttpCode(204)
  async remove(
    @Param('tenant') slug: string,
    @Param('period') period: string,
    @Req() request: FastifyRequest,
  ): Promise<void> {
    await this.caps.removeByOperator(slug, periodOf(period), operatorActorOf(request));
  }
}

function periodOf(text: string): CapPeriod {
  const period = CAP_PERIODS.find((each) => each === text);
  if (period && period !== 'life') return period;
  throw ProtocolError.invalidParams('period', 'must be day, week or month');
}
