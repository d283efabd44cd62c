import { TasksModule } from '@baton/tasks';
import { Module } from '@nestjs/common';
import { AccessModule } from '../access/access.module.js';
import { HttpModule } from '../http/http.module.js';
import { Admission } from './admission.js';
import { AgentFinder } from './agent-finder.js';
import { CardSheets } from './card-sheets.js';
import { CardsController } from './cards.controller.js';
import { DISPATCH_CONTROLLERS } from './dispatch.controller.js';
import { RpcHandler } from './rpc-handler.js';
import { OpenStreams } from './open-streams.js';
import { PROFILE_CARD_CONTROLLERS } from './profile-cards.controller.js';
import { RootCardsController } from './root-cards.controller.js';
import { StreamQuota } from './stream-quota.js';
import { StreamSender } from './stream-sender.js';

/** The A2A endpoints: JSON-RPC, its streams, and agent cards. */
@Module({
  imports: [AccessModule, HttpModule, TasksModule],
  controllers: [...DISPATCH_CONTROLLERS, CardsController, RootCardsController, ...PROFILE_CARD_CONTROLLERS],
  providers: [AgentFinder, Admission, RpcHandler, StreamSender, StreamQuota, OpenStreams, CardSheets],
  exports: [OpenStreams, StreamQuota, StreamSender],
})
export class A2aModule {}
