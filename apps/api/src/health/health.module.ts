import { Module } from '@nestjs/common';
import { TasksModule } from '@baton/tasks';
import { HttpModule } from '../http/http.module.js';
import { HealthController } from './health.controller.js';

/** `/healthz`, `/readyz` and `/metrics`. */
@Module({ imports: [HttpModule, TasksModule], controllers: [HealthController] })
export class HealthModule {}
