import { Module } from '@nestjs/common';
import { TasksModule } from '@baton/tasks';
import { HttpModule } from '../http/http.module.js';
import { AdminAgentsController } from './admin-agents.controller.js';
import { AdminAuditController } from './admin-audit.controller.js';
import { AdminIssuersController } from './admin-issuers.controller.js';
import { AdminPlatformController } from './admin-platform.controller.js';
import { AdminHostsController } from './admin-hosts.controller.js';
import { AdminOperatorTokensController } from './admin-operator-tokens.controller.js';
import { AdminRequestsController } from './admin-requests.controller.js';
import { AdminSecretsController } from './admin-secrets.controller.js';
import { AdminSpendingCapsController } from './admin-spending-caps.controller.js';
import { AdminTaskSearchController } from './admin-task-search.controller.js';
import { AdminTasksController } from './admin-tasks.controller.js';
import { OperatorTasks } from './operator-tasks.js';
import { AdminTenantsController } from './admin-tenants.controller.js';
import { AdminUsageController } from './admin-usage.controller.js';
import { AdminTokensController } from './admin-tokens.controller.js';

/** The API of operators on the management port: `/v1/admin/…`, over all tenants. */
@Module({
  imports: [HttpModule, TasksModule],
  controllers: [
    AdminTenantsController,
    AdminTokensController,
    AdminIssuersController,
    AdminAgentsController,
    AdminSecretsController,
    AdminAuditController,
    AdminHostsController,
    AdminOperatorTokensController,
    AdminPlatformController,
    AdminTasksController,
    AdminRequestsController,
    AdminTaskSearchController,
    AdminSpendingCapsController,
    AdminUsageController,
  ],
  providers: [OperatorTasks],
})
export class AdminModule {}
