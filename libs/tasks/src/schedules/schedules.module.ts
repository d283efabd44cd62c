import { Module } from '@nestjs/common';
import { AgentDirectoryModule } from '../catalog/catalog.module.js';
import { LookoutModule } from '../core/lookout.js';
import { TurnsModule } from '../turns/turns.module.js';
import { ScheduleClock } from './schedule-clock.js';
import { ScheduleFiring } from './schedule-firing.js';
import { ScheduleAdvancer } from './schedule-advancer.js';
import { Schedules } from './schedules.js';

/** The schedules of tenants, for the API. It fires them only when a caller asks for it. */
@Module({
  imports: [AgentDirectoryModule, TurnsModule],
  providers: [Schedules, ScheduleFiring],
  exports: [Schedules],
})
export class SchedulesModule {}

/** Fires schedules on time, in workers. */
@Module({
  imports: [AgentDirectoryModule, LookoutModule, TurnsModule],
  providers: [ScheduleClock, ScheduleAdvancer, ScheduleFiring],
})
export class ScheduleClockModule {}
