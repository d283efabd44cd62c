import { TasksModule } from '@baton/tasks';
import { Module } from '@nestjs/common';
import { AccessModule } from '../access/access.module.js';
import { HttpModule } from '../http/http.module.js';
import { EventStreams } from '../streams/event-streams.js';
import { StreamQuota } from '../streams/stream-quota.js';
import { AgentCards } from './agent-cards.js';
import { CallHandler } from './call-handler.js';
import { CallRunner } from './call-runner.js';
import { CardSigner } from './card-signer.js';
import { CallResolver } from './call-resolver.js';
import { AgentFinder } from './agent-finder.js';

/** Calls of operations in any protocol: who calls which agent, and the answer or the stream. */
@Module({
  imports: [AccessModule, HttpModule, TasksModule],
  providers: [
    AgentCards,
    AgentFinder,
    CallHandler,
    CallResolver,
    CallRunner,
    CardSigner,
    EventStreams,
    StreamQuota,
  ],
  exports: [AgentCards, AgentFinder, CallHandler, CallResolver, CallRunner, CardSigner],
})
export class CoreModule {}
