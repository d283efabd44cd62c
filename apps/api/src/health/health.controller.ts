import { Controller, Get, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Public } from '../access/route-access.js';
import { ApiReadiness } from './api-readiness.js';
import { sendReadiness } from './send-readiness.js';

/** `/healthz` and `/readyz` for load balancers: they answer yes or no, without details of the services behind. */
@Public()
@Controller()
export class HealthController {
  constructor(private readonly readiness: ApiReadiness) {}

  /** Liveness: the process answers. A failing database must not cause a restart. */
  @Get('healthz')
  healthz(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /** Ready to serve callers, or 503. */
  @Get('readyz')
  async readyz(@Res() reply: FastifyReply): Promise<void> {
    const { ready } = await this.readiness.report();
    await sendReadiness(reply, ready, { status: ready ? 'ok' : 'unavailable' });
  }
}
