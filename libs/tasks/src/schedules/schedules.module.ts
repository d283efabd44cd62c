import { Module } from '@nestjs/common';
import { AgentDirectoryModule } from '../catalog/agent-directory.module.js';
import { TurnsModule } from '../turns/turns.module.js';
import { ScheduleFiring } from './schedule-firing.js';
import { Schedules } from './schedules.js';

/** The schedules of tenants, for the API. It fires them only when a caller asks for it. */
@Module({
  imports: [AgentDirectoryModule, TurnsModule],
  providers: [Schedules, ScheduleFiring],
  exports: [Schedules],
})
export class SchedulesModule {}
