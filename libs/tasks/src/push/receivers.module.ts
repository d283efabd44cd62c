import { OutboundModule } from '@baton/outbound';
import { Module } from '@nestjs/common';
import { DeliverySigner } from './delivery-signer.js';
import { ReceiverCheck } from './receiver-check.js';

/** Checks the receivers that callers name, and proves to receivers who calls them. */
@Module({
  imports: [OutboundModule],
  providers: [DeliverySigner, ReceiverCheck],
  exports: [DeliverySigner, ReceiverCheck],
})
export class ReceiversModule {}
