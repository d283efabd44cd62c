import { Metrics } from '@baton/telemetry';
import { Controller, Get, Headers, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Public } from '../access/route-access.js';
import { OnManagementPort } from '../management/management-port.js';
import { ApiReadiness } from './api-readiness.js';
import { sendReadiness } from './send-readiness.js';

/** Health with details, and metrics. They name no tenant, so they need no token. */
@Public()
@OnManagementPort()
@Controller()
export class ManagementHealthController {
  constructor(
    private readonly readiness: ApiReadiness,
    private readonly metrics: Metrics,
  ) {}

  @Get('healthz')
  healthz(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /**
   * Each check with `ok` or its reason. If no worker is alive, this is only a warning: this process still accepts and
   * stores tasks.
   */
  @Get('readyz')
  async readyz(@Res() reply: FastifyReply): Promise<void> {
    const report = await this.readiness.report();
    await sendReadiness(reply, report.ready, report);
  }

  @Get('metrics')
  async scrape(@Headers('accept') accept: string | undefined, @Res() reply: FastifyReply): Promise<void> {
    const { contentType, body } = await this.metrics.render(accept);
    await reply.header('content-type', contentType).send(body);
  }
}
