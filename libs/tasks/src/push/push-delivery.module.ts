import { OutboundModule } from '@baton/outbound';
import { Module } from '@nestjs/common';
import { SweepLeaderModule } from '../core/sweep-leader.module.js';
import { RunsModule } from '../runs/runs.module.js';
import { PushSender } from './push-sender.js';
import { PushWorker } from './push-worker.js';
import { ReceiversModule } from './receivers.module.js';

/** Delivers push notifications, in workers. */
@Module({
  imports: [SweepLeaderModule, OutboundModule, ReceiversModule, RunsModule],
  providers: [PushSender, PushWorker],
})
export class PushDeliveryModule {}
