import { Module } from '@nestjs/common';
import { APP_FILTER, APP_INTERCEPTOR } from '@nestjs/core';
import { ErrorFilter } from './error.filter.js';
import { Failures } from './failure.js';
import { PublicUrl } from './public-url.js';
import { ReadMemoryPool } from './read-memory.js';
import { RequestRate } from './request-rate.js';
import { Traffic } from './traffic.js';

/**
 * What every endpoint shares: the error filter, the tenants' requests per second, the requests in hand, the memory for
 * large tasks, and the server's own URL.
 */
@Module({
  providers: [
    { provide: APP_FILTER, useClass: ErrorFilter },
    { provide: APP_INTERCEPTOR, useClass: RequestRate },
    Failures,
    PublicUrl,
    ReadMemoryPool,
    Traffic,
  ],
  exports: [Failures, PublicUrl, ReadMemoryPool, Traffic],
})
export class HttpModule {}
