import { OutboundModule } from '@baton/outbound';
import { Module } from '@nestjs/common';
import { AgentDirectoryModule } from '../catalog/catalog.module.js';
import { WebhookSecrets } from '../push/webhook-secrets.js';
import { Webhooks } from './webhooks.js';

/** The webhooks of tenants, for the API. Workers deliver what they are told. */
@Module({
  imports: [AgentDirectoryModule, OutboundModule],
  providers: [Webhooks, WebhookSecrets],
  exports: [Webhooks],
})
export class WebhooksModule {}
