import { Module } from '@nestjs/common';
import { AgentDirectoryModule } from '../catalog/agent-directory.module.js';
import { SweepLeaderModule } from '../core/sweep-leader.module.js';
import { TurnsModule } from '../turns/turns.module.js';
import { ScheduleClock } from './schedule-clock.js';
import { ScheduleFiring } from './schedule-firing.js';
import { ScheduleAdvancer } from './schedule-advancer.js';

/** Fires schedules on time, in workers. */
@Module({
  imports: [AgentDirectoryModule, SweepLeaderModule, TurnsModule],
  providers: [ScheduleClock, ScheduleAdvancer, ScheduleFiring],
})
export class ScheduleClockModule {}
