import { Module } from '@nestjs/common';
import { APP_FILTER, APP_INTERCEPTOR } from '@nestjs/core';
import { ErrorFilter } from './error.filter.js';
import { Failures } from './failure.js';
import { PublicUrl } from './public-url.js';
import { RequestRate } from './request-rate.js';
import { Traffic } from './traffic.js';

/** What every endpoint shares: the error filter, the tenants' requests per second, the requests in hand, and the server's own URL. */
@Module({
  providers: [
    { provide: APP_FILTER, useClass: ErrorFilter },
    { provide: APP_INTERCEPTOR, useClass: RequestRate },
    Failures,
    PublicUrl,
    Traffic,
  ],
  exports: [Failures, PublicUrl, Traffic],
})
export class HttpModule {}
