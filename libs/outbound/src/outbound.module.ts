import { Environment } from '@baton/config';
import { Metrics } from '@baton/telemetry';
import { Module } from '@nestjs/common';
import { Outbound } from './outbound.js';

/** Provides Outbound, with the addresses that the operator allows. */
@Module({
  providers: [
    {
      provide: Outbound,
      useFactory: ({ outboundAllow }: Environment, metrics: Metrics) => new Outbound(outboundAllow, metrics),
      inject: [Environment, Metrics],
    },
  ],
  exports: [Outbound],
})
export class OutboundModule {}
