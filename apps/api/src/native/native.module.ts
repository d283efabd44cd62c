import { IdentityModule } from '@baton/identity';
import { TasksModule } from '@baton/tasks';
import { Module } from '@nestjs/common';
import { A2aModule } from '../a2a/a2a.module.js';
import { DeadLettersController } from './dead-letters.controller.js';
import { RequestCalls } from './request-calls.js';
import { RequestsController } from './requests.controller.js';

/** Baton's own endpoints, beside A2A: a tenant's tasks as requests, their logs, and its dead letters. */
@Module({
  imports: [A2aModule, IdentityModule, TasksModule],
  controllers: [RequestsController, DeadLettersController],
  providers: [RequestCalls],
})
export class NativeModule {}
