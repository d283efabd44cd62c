import { IdentityModule } from '@baton/identity';
import { TasksModule } from '@baton/tasks';
import { Module } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { AccessGuard } from './access.guard.js';
import { HttpModule } from '../http/http.module.js';
import { AuthorizationServers } from './authorization-servers.js';
import { BearerStrategy } from './bearer-strategy.js';
import { HostBindings } from './host-bindings.js';
import { RequestRates } from './request-rates.js';
import { UnauthenticatedLimit } from './unauthenticated-limit.js';

/** Guards every route of the process: who calls, how often, and with which scopes. */
@Module({
  imports: [HttpModule, IdentityModule, TasksModule],
  providers: [
    AccessGuard,
    AuthorizationServers,
    BearerStrategy,
    { provide: APP_GUARD, useExisting: AccessGuard },
    HostBindings,
    RequestRates,
    UnauthenticatedLimit,
  ],
  exports: [AccessGuard, AuthorizationServers, HostBindings, RequestRates, UnauthenticatedLimit],
})
export class AccessModule {}
