import { PlatformReadiness } from '@baton/tasks';
import { Module } from '@nestjs/common';
import { HttpModule } from '../http/http.module.js';
import { HealthController } from './health.controller.js';
import { Readiness } from './readiness.js';

/** `/healthz`, `/readyz` and `/metrics`. */
@Module({
  imports: [HttpModule],
  controllers: [HealthController],
  providers: [PlatformReadiness, Readiness],
})
export class HealthModule {}
