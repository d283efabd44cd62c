import { OutboundModule } from '@baton/outbound';
import { Module } from '@nestjs/common';
import { BulkWork } from './bulk/bulk-work.js';
import { MatchingTasks } from './bulk/matching-tasks.js';
import { TaskActions } from './bulk/task-actions.js';
import { FailingNextWatch } from './catalog/failing-next-watch.js';
import { AgentDirectoryModule } from './catalog/agent-directory.module.js';
import { SweepLeaderModule } from './core/sweep-leader.module.js';
import { CanceledRemoteCalls } from './delegation/canceled-remote-calls.js';
import { TaskTreeSweep } from './delegation/task-tree-sweep.js';
import { CanceledStepsSweep } from './forks/canceled-steps-sweep.js';
import { TaskForks } from './forks/task-forks.js';
import { PlatformModule } from './platform/platform.module.js';
import { ReceiversModule } from './push/receivers.module.js';
import { PushDeliveryModule } from './push/push-delivery.module.js';
import { RetentionSweep } from './retention/retention-sweep.js';
import { UsageCount } from './retention/usage-count.js';
import { UsageRollup } from './retention/usage-rollup.js';
import { SpendingWarnings } from './webhooks/spending-warnings.js';
import { TaskReminders } from './webhooks/task-reminders.js';
import { WebhookNotices } from './webhooks/webhook-notices.js';
import { RunsModule } from './runs/runs.module.js';
import { RuntimePortsModule } from './runtime-ports/runtime-ports.module.js';
import { ScheduleClockModule } from './schedules/schedule-clock.module.js';
import { TurnsModule } from './turns/turns.module.js';
import { UnansweredTasks } from './turns/unanswered-tasks.js';

/** Everything a worker does: runs, push notifications, schedules that are due, and the sweeps. It answers no caller. */
@Module({
  imports: [
    AgentDirectoryModule,
    SweepLeaderModule,
    PlatformModule,
    PushDeliveryModule,
    OutboundModule,
    ReceiversModule,
    RunsModule,
    RuntimePortsModule,
    ScheduleClockModule,
    TurnsModule,
  ],
  providers: [
    BulkWork,
    CanceledRemoteCalls,
    CanceledStepsSweep,
    FailingNextWatch,
    MatchingTasks,
    TaskActions,
    TaskForks,
    TaskTreeSweep,
    RetentionSweep,
    UnansweredTasks,
    UsageCount,
    UsageRollup,
    SpendingWarnings,
    TaskReminders,
    WebhookNotices,
  ],
  exports: [PlatformModule, RunsModule],
})
export class WorkerTasksModule {}
