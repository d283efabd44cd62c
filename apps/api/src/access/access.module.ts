import { IdentityModule } from '@baton/identity';
import { TasksModule } from '@baton/tasks';
import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { AccessGuard, BearerStrategy } from './access.guard.js';
import { HostBindings } from './host-bindings.js';
import { RequestRates, UnauthenticatedLimit } from './rate-limits.js';

/** Guards every route of the process: who calls, how often, and with which scopes. */
@Module({
  imports: [IdentityModule, TasksModule],
  providers: [
    AccessGuard,
    BearerStrategy,
    { provide: APP_GUARD, useExisting: AccessGuard },
    HostBindings,
    RequestRates,
    UnauthenticatedLimit,
  ],
  exports: [AccessGuard, HostBindings, RequestRates, UnauthenticatedLimit],
})
export class AccessModule {}
