import { TasksModule } from '@baton/tasks';
import { Module } from '@nestjs/common';
import { AccessModule } from '../access/access.module.js';
import { HttpModule } from '../http/http.module.js';
import { EventStreams } from '../streams/sse-stream.js';
import { StreamQuota } from '../streams/stream-quota.js';
import { CallRunner } from './call-runner.js';
import { AgentFinder, CallResolver } from './request-context.js';

/** Calls of operations, whatever protocol they come in: who calls which agent, and the answer or the stream. */
@Module({
  imports: [AccessModule, HttpModule, TasksModule],
  providers: [AgentFinder, CallResolver, CallRunner, EventStreams, StreamQuota],
  exports: [AgentFinder, CallResolver, CallRunner],
})
export class CoreModule {}
