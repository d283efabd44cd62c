import { IdentityModule } from '@baton/identity';
import { TasksModule } from '@baton/tasks';
import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { AccessGuard } from './access.guard.js';
import { HostBindings } from './host-bindings.js';
import { UnauthenticatedLimit } from './unauthenticated-limit.js';

/** Guards every route of the process: who calls, how often, and with which scopes. */
@Module({
  imports: [IdentityModule, TasksModule],
  providers: [{ provide: APP_GUARD, useClass: AccessGuard }, HostBindings, UnauthenticatedLimit],
  exports: [HostBindings],
})
export class AccessModule {}
