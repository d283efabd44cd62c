import { OutboundModule } from '@baton/outbound';
import { Module } from '@nestjs/common';
import { BulkOperations } from './bulk/bulk-operations.js';
import { MatchingTasks } from './bulk/matching-tasks.js';
import { CatalogModule } from './catalog/catalog.module.js';
import { DeadLetters } from './dead-letters/dead-letters.js';
import { DeadPushes } from './tenants/dead-pushes.js';
import { TaskForks } from './forks/task-forks.js';
import { OperationsModule } from './operations/operations.module.js';
import { PlatformModule } from './platform/platform.module.js';
import { WorkerAlarm } from './platform/worker-alarm.js';
import { SchedulesModule } from './schedules/schedules.module.js';
import { SpendingCaps } from './spending/spending-caps.js';
import { BoundHosts } from './tenants/bound-hosts.js';
import { PlatformService } from './tenants/platform-service.js';
import { OperatorLetters } from './tenants/operator-letters.js';
import { PrincipalActivity } from './tenants/principal-activity.js';
import { TenantLifecycle } from './tenants/tenant-lifecycle.js';
import { TenantSettings } from './tenants/tenant-settings.js';
import { TenantTokens } from './tenants/tenant-tokens.js';
import { TrustedIssuers } from './tenants/trusted-issuers.js';
import { ToolChecksModule } from './tool-checks/tool-checks.module.js';
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
    BulkOperations,
    MatchingTasks,
    DeadLetters,
    DeadPushes,
    TaskForks,
    PrincipalActivity,
    TenantTokens,
    WorkerAlarm,
    TenantLifecycle,
    TenantSettings,
    PlatformService,
    OperatorLetters,
    BoundHosts,
    TrustedIssuers,
    SpendingCaps,
  ],
  exports: [
    CatalogModule,
    BulkOperations,
    DeadLetters,
    DeadPushes,
    TaskForks,
    OperationsModule,
    PlatformModule,
    SchedulesModule,
    ToolChecksModule,
    TurnsModule,
    WebhooksModule,
    TenantLifecycle,
    TenantSettings,
    TenantTokens,
    PlatformService,
    OperatorLetters,
    BoundHosts,
    TrustedIssuers,
    SpendingCaps,
  ],
})
export class TasksModule {}
