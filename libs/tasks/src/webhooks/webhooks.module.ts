import { OutboundModule } from '@baton/outbound';
import { Module } from '@nestjs/common';
import { AgentDirectoryModule } from '../catalog/catalog.module.js';
import { ReceiversModule } from '../push/receiver-check.js';
import { Webhooks } from './webhooks.js';

/** The webhooks of tenants, for the API. Workers deliver their events. */
@Module({
  imports: [AgentDirectoryModule, OutboundModule, ReceiversModule],
  providers: [Webhooks],
  exports: [Webhooks],
})
export class WebhooksModule {}
