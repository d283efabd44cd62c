import { Environment } from '@baton/config';
import { Logger, Metrics } from '@baton/telemetry';
import { Module } from '@nestjs/common';
import { Outbound } from './outbound.js';

/** Provides Outbound, with the addresses that the operator allows. */
@Module({
  providers: [
    {
      provide: Outbound,
      useFactory: ({ outboundAllow }: Environment, metrics: Metrics, logger: Logger) =>
        new Outbound(outboundAllow, metrics, undefined, logger),
      inject: [Environment, Metrics, Logger],
    },
  ],
  exports: [Outbound],
})
export class OutboundModule {}
