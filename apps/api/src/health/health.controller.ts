import { PlatformReadiness, TasksModule } from '@baton/tasks';
import { Metrics } from '@baton/telemetry';
import { Controller, Get, Module, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Public } from '../access/access.guard.js';
import { HttpModule } from '../http/http.module.js';
import { Traffic } from '../http/requests.js';

/** `/healthz`, `/readyz` and `/metrics`, for load balancers and operators. They name no tenant, so they need no token. */
@Public()
@Controller()
export class HealthController {
  constructor(
    private readonly readiness: PlatformReadiness,
    private readonly traffic: Traffic,
    private readonly metrics: Metrics,
  ) {}

  /** Alive: the process answers. A failing database must not get it restarted. */
  @Get('healthz')
  healthz(): { status: 'ok' } {
    return { status: 'ok' };
  }

  /**
   * Ready to serve callers; 503 and the failing checks if not. That no worker is alive is a warning: this process can
   * still accept tasks, and keeps them.
   */
  @Get('readyz')
  async readyz(@Res() reply: FastifyReply): Promise<void> {
    const { ready, checks, warnings } = await this.readiness.report();
    const { draining } = this.traffic;
    const isReady = ready && !draining;
    if (!isReady) reply.header('retry-after', '2');
    await reply
      .status(isReady ? 200 : 503)
      .header('cache-control', 'no-store')
      .send({ ready: isReady, checks: { ...checks, server: draining ? 'shutting down' : 'ok' }, warnings });
  }

  @Get('metrics')
  async scrape(@Res() reply: FastifyReply): Promise<void> {
    const { contentType, body } = await this.metrics.render();
    await reply.header('content-type', contentType).send(body);
  }
}

@Module({ imports: [HttpModule, TasksModule], controllers: [HealthController] })
export class HealthModule {}
