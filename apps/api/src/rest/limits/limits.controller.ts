import { LIMIT_NAMES, limitRule } from '@baton/config';
import { callerOf, LimitsService } from '@baton/identity';
import { TenantSettings } from '@baton/tasks';
import { Controller, Get, Req } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { RequireScope } from '../../access/route-access.js';
import { Describe } from '../../openapi/route.js';

const limitsAnswer = z
  .object({
    limits: z.array(
      z.object({
        name: z.string(),
        counts: z.string().describe('What is counted, in words'),
        max: z.number().nullable().describe('Null: no limit'),
        used: z
          .number()
          .nullable()
          .describe(
            'How much is used now. Null: it bounds single requests, runs or tasks, or is not counted',
          ),
      }),
    ),
  })
  .meta({ id: 'LimitsInUse' });

/** The limits of the caller's tenant. Only the operator changes them. */
@Controller('v1/limits')
export class LimitsController {
  constructor(
    private readonly limits: LimitsService,
    private readonly settings: TenantSettings,
  ) {}

  @Describe({
    id: 'getLimits',
    summary: 'Lists the limits of the tenant and their present use',
    answer: limitsAnswer,
  })
  @RequireScope('tasks:read')
  @Get()
  async list(@Req() request: FastifyRequest): Promise<z.infer<typeof limitsAnswer>> {
    const { tenantId } = callerOf(request);
    const [limits, use] = await Promise.all([this.limits.get(tenantId), this.settings.limitUse(tenantId)]);
    const used: Partial<Record<string, number | null>> = use;
    return {
      limits: LIMIT_NAMES.map((name) => ({
        name,
        counts: limitRule(name).counts,
        max: limits[name],
        used: used[name] ?? null,
      })),
    };
  }
}
