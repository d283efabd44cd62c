import { OutboundModule } from '@baton/outbound';
import { Module } from '@nestjs/common';
import { AgentDirectoryModule } from '../catalog/agent-directory.module.js';
import { ReceiversModule } from '../push/receivers.module.js';
import { Webhooks } from './webhooks.js';

/** The webhooks of tenants, for the API. Workers deliver their events. */
@Module({
  imports: [AgentDirectoryModule, OutboundModule, ReceiversModule],
  providers: [Webhooks],
  exports: [Webhooks],
})
export class WebhooksModule {}
