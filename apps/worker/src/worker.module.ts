import { ComputeModule } from '@baton/compute';
import { ConfigModule } from '@baton/config';
import { DatabaseModule } from '@baton/database';
import { LimitsModule, SecretsModule } from '@baton/identity';
import { MessagingModule } from '@baton/messaging';
import { WorkerTasksModule } from '@baton/tasks';
import { TelemetryModule } from '@baton/telemetry';
import { Module } from '@nestjs/common';
import { HealthServer } from './health-server.js';
import { InstalledAgents } from './installed-agents.js';

/**
 * The composition root of a worker: runs and their dependencies. Left out on purpose: tokens, profiles and operations.
 * A worker answers no caller.
 */
@Module({
  imports: [
    ConfigModule,
    TelemetryModule.named('worker'),
    DatabaseModule,
    MessagingModule,
    LimitsModule,
    SecretsModule,
    ComputeModule,
    WorkerTasksModule,
  ],
  providers: [InstalledAgents, HealthServer],
})
export class WorkerModule {}
