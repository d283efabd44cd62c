import { Environment } from '@baton/config';
import { Logger, Metrics } from '@baton/telemetry';
import { Module } from '@nestjs/common';
import { Outbound } from './outbound.js';

/** Provides Outbound, with what the operator has set. */
@Module({
  providers: [
    {
      provide: Outbound,
      useFactory: (environment: Environment, metrics: Metrics, logger: Logger) =>
        new Outbound(environment, metrics, undefined, logger),
      inject: [Environment, Metrics, Logger],
    },
  ],
  exports: [Outbound],
})
export class OutboundModule {}
