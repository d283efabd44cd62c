import { OutboundModule } from '@baton/outbound';
import { Module } from '@nestjs/common';
import { DeliverySigner } from './delivery-signer.js';
import { ReceiverCheck } from './receiver-check.js';

/** Checks receivers of push notifications, and signs deliveries to them. */
@Module({
  imports: [OutboundModule],
  providers: [DeliverySigner, ReceiverCheck],
  exports: [DeliverySigner, ReceiverCheck],
})
export class ReceiversModule {}
