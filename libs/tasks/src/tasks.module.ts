import { OutboundModule } from '@baton/outbound';
import { Module } from '@nestjs/common';
import { CatalogModule } from './catalog/catalog.module.js';
import { DeadLetters } from './dead-letters/dead-letters.js';
import { LookoutModule } from './core/lookout.js';
import { DeadPushes } from './tenants/dead-pushes.js';
import { TaskTreeSweep } from './delegation/task-tree-sweep.js';
import { OperationsModule } from './operations/operations.module.js';
import { PlatformModule } from './platform/platform.module.js';
import { WorkerAlarm } from './platform/worker-watch.js';
import { PushDeliveryModule } from './push/push.module.js';
import { RetentionSweep } from './retention/retention-sweep.js';
import { UsageCount } from './retention/usage-count.js';
import { UsageRollup } from './retention/usage-rollup.js';
import { RunsModule } from './runs/runs.module.js';
import { ScheduleClockModule, SchedulesModule } from './schedules/schedules.module.js';
import { BoundHosts } from './tenants/bound-hosts.js';
import { OperatorDesk } from './tenants/operator-desk.js';
import { OperatorLetters } from './tenants/operator-letters.js';
import { PrincipalWork } from './tenants/principal-work.js';
import { TenantLifecycle } from './tenants/tenant-lifecycle.js';
import { TenantSettings } from './tenants/tenant-settings.js';
import { TenantTokens } from './tenants/tenant-tokens.js';
import { TrustedIssuers } from './tenants/trusted-issuers.js';
import { ToolChecksModule } from './tool-checks/tool-checks.js';
import { TurnsModule } from './turns/turns.module.js';
import { WebhooksModule } from './webhooks/webhooks.module.js';

/** The use cases, for the API: everything a caller can ask. It executes nothing. */
@Module({
  imports: [
    CatalogModule,
    OperationsModule,
    OutboundModule,
    PlatformModule,
    SchedulesModule,
    ToolChecksModule,
    TurnsModule,
    WebhooksModule,
  ],
  providers: [
    DeadLetters,
    DeadPushes,
    PrincipalWork,
    TenantTokens,
    WorkerAlarm,
    TenantLifecycle,
    TenantSettings,
    OperatorDesk,
    OperatorLetters,
    BoundHosts,
    TrustedIssuers,
  ],
  exports: [
    CatalogModule,
    DeadLetters,
    DeadPushes,
    OperationsModule,
    PlatformModule,
    SchedulesModule,
    ToolChecksModule,
    WebhooksModule,
    TenantLifecycle,
    TenantSettings,
    TenantTokens,
    OperatorDesk,
    OperatorLetters,
    BoundHosts,
    TrustedIssuers,
  ],
})
export class TasksModule {}

/** Everything a worker does: runs, push notifications, schedules that are due, and the sweeps. It answers no caller. */
@Module({
  imports: [LookoutModule, PlatformModule, PushDeliveryModule, RunsModule, ScheduleClockModule, TurnsModule],
  providers: [TaskTreeSweep, RetentionSweep, UsageCount, UsageRollup],
  exports: [PlatformModule, RunsModule],
})
export class WorkerTasksModule {}
