import { PlatformReadiness, TasksModule } from '@baton/tasks';
import { Metrics } from '@baton/telemetry';
import { Controller, Get, Headers, Injectable, Module, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { Public } from '../access/access.guard.js';
import { HttpModule } from '../http/http.module.js';
import { Traffic } from '../http/requests.js';
import { OnManagementPort } from '../management/management-port.js';

/** What `/readyz` says on the management port. */
interface Readiness {
  ready: boolean;
  checks: Record<string, string>;
  warnings: string[];
}

/** Whether this process can serve callers. */
@Injectable()
class ApiReadiness {
  constructor(
    private readonly platform: PlatformReadiness,
    private readonly traffic: Traffic,
  ) {}

  async report(): Promise<Readiness> {
    const { ready, checks, warnings } = await this.platform.report();
    const { draining } = this.traffic;
    const server = draining ? 'shutting down' : 'ok';
    return { ready: ready && !draining, checks: { ...checks, server }, warnings };
  }
}

/** `/healthz` and `/readyz` for load balancers: they say yes or no, and nothing about what stands behind. */
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

async function sendReadiness(reply: FastifyReply, ready: boolean, body: object): Promise<void> {
  if (!ready) reply.header('retry-after', '2');
  await reply
    .status(ready ? 200 : 503)
    .header('cache-control', 'no-store')
    .send(body);
}

@Module({
  imports: [HttpModule, TasksModule],
  controllers: [HealthController, ManagementHealthController],
  providers: [ApiReadiness],
})
export class HealthModule {}
