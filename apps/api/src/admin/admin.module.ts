import { Module } from '@nestjs/common';
import { TasksModule } from '@baton/tasks';
import { HttpModule } from '../http/http.module.js';
import { AdminAgentsController } from './agents.controller.js';
import { AdminAuditController } from './audit.controller.js';
import { AdminIssuersController } from './issuers.controller.js';
import { AdminHostsController, AdminPlatformController } from './platform.controller.js';
import { AdminSecretsController } from './secrets.controller.js';
import { AdminTenantsController } from './tenants.controller.js';
import { AdminTokensController } from './tokens.controller.js';

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
    AdminPlatformController,
  ],
})
export class AdminModule {}
