import { TasksModule } from '@baton/tasks';
import { Module } from '@nestjs/common';
import { HttpModule } from '../http/http.module.js';
import { ApiReadiness } from './api-readiness.js';
import { ManagementHealthController } from './management-health.controller.js';
import { HealthController } from './health.controller.js';

@Module({
  imports: [HttpModule, TasksModule],
  controllers: [HealthController, ManagementHealthController],
  providers: [ApiReadiness],
})
export class HealthModule {}
