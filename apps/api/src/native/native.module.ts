import { IdentityModule, SecretsModule } from '@baton/identity';
import { TasksModule } from '@baton/tasks';
import { Module } from '@nestjs/common';
import { A2aModule } from '../a2a/a2a.module.js';
import { HttpModule } from '../http/http.module.js';
import { AgentVersionsController } from './agent-versions.controller.js';
import { AgentsController } from './agents.controller.js';
import { DeadLettersController } from './dead-letters.controller.js';
import { JsonBodies } from './json-bodies.js';
import { RequestCalls } from './request-calls.js';
import { RequestsController } from './requests.controller.js';
import { SchedulesController } from './schedules.controller.js';
import { SchemaController } from './schema.controller.js';
import { SecretsController } from './secrets.controller.js';

/** Baton's own endpoints, beside A2A: a tenant's requests, dead letters, agents, secrets and schedules. */
@Module({
  imports: [A2aModule, HttpModule, IdentityModule, SecretsModule, TasksModule],
  controllers: [
    ...[RequestsController, DeadLettersController, SecretsController, SchedulesController],
    ...[AgentsController, AgentVersionsController, SchemaController],
  ],
  providers: [RequestCalls, JsonBodies],
})
export class NativeModule {}
