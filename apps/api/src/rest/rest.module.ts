import { SecretsModule } from '@baton/identity';
import { TasksModule } from '@baton/tasks';
import { Module } from '@nestjs/common';
import { CoreModule } from '../core/core.module.js';
import { HttpModule } from '../http/http.module.js';
import { EffectsController } from './effects/effects.controller.js';
import { AgentNextController } from './agents/agent-next.controller.js';
import { AgentVersionsController } from './agents/agent-versions.controller.js';
import { AgentsController } from './agents/agents.controller.js';
import { AgentSchemaController } from './agents/agent-schema.controller.js';
import { AuditController } from './audit/audit.controller.js';
import { BulkController } from './bulk/bulk.controller.js';
import { DeadLettersController } from './dead-letters/dead-letters.controller.js';
import { DeadPushesController } from './dead-letters/dead-pushes.controller.js';
import { ConnectionsController } from './connections/connections.controller.js';
import { SignInPagesController } from './connections/sign-in-pages.controller.js';
import { LimitsController } from './limits/limits.controller.js';
import { arbiterRequests } from './tasks/arbiter-requests.js';
import { TaskActionsController } from './tasks/task-actions.controller.js';
import { TaskCallResolver } from './tasks/task-call-resolver.js';
import { TaskLogController } from './tasks/task-log.controller.js';
import { TaskTraceController } from './tasks/task-trace.controller.js';
import { TasksController } from './tasks/tasks.controller.js';
import { SchedulesController } from './schedules/schedules.controller.js';
import { SecretsController } from './secrets/secrets.controller.js';
import { TokensController } from './tokens/tokens.controller.js';
import { UsageController } from './usage/usage.controller.js';
import { SpendingCapsController } from './spending-caps/spending-caps.controller.js';
import { WebhooksController } from './webhooks/webhooks.controller.js';
import { WhoamiController } from './whoami/whoami.controller.js';

/** The routes of `/v1/tasks`. */
const TASK_CONTROLLERS = [TasksController, TaskLogController, TaskTraceController, TaskActionsController];

/** Baton's own REST API, beside A2A: a tenant's tasks, operations on many of them, dead letters, agents, secrets, sign-ins at servers, schedules, webhooks, tokens, usage, spending caps and audit log; and who calls. */
@Module({
  imports: [CoreModule, HttpModule, SecretsModule, TasksModule],
  controllers: [
    ...TASK_CONTROLLERS,
    ...TASK_CONTROLLERS.map(arbiterRequests),
    BulkController,
    DeadLettersController,
    SecretsController,
    ConnectionsController,
    SignInPagesController,
    SchedulesController,
    TokensController,
    DeadPushesController,
    AgentsController,
    EffectsController,
    AgentNextController,
    AgentVersionsController,
    AgentSchemaController,
    AuditController,
    LimitsController,
    UsageController,
    SpendingCapsController,
    WebhooksController,
    WhoamiController,
  ],
  providers: [TaskCallResolver],
})
export class RestModule {}
