import { OutboundModule } from '@baton/outbound';
import { Module } from '@nestjs/common';
import { LookoutModule } from '../core/lookout.module.js';
import { RunsModule } from '../runs/runs.module.js';
import { PushSender } from './push-sender.js';
import { PushWorker } from './push-worker.js';
import { ReceiversModule } from './receivers.module.js';

/** Delivers push notifications, in workers. */
@Module({
  imports: [LookoutModule, OutboundModule, ReceiversModule, RunsModule],
  providers: [PushSender, PushWorker],
})
export class PushDeliveryModule {}
