import { OutboundModule } from '@baton/outbound';
import { Module } from '@nestjs/common';
import { LookoutModule } from '../core/lookout.js';
import { RunsModule } from '../runs/runs.module.js';
import { PushSender } from './push-sender.js';
import { PushWorker } from './push-worker.js';
import { WebhookSecrets } from './webhook-secrets.js';

/** Delivers push notifications, in workers. */
@Module({
  imports: [LookoutModule, OutboundModule, RunsModule],
  providers: [PushSender, PushWorker, WebhookSecrets],
})
export class PushDeliveryModule {}
