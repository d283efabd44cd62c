import { Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { ErrorFilter } from './error.filter.js';
import { PublicUrl } from './public-url.js';
import { Traffic } from './traffic.js';

/** What every endpoint shares: the error filter, the requests in hand, and the server's own URL. */
@Module({
  providers: [{ provide: APP_FILTER, useClass: ErrorFilter }, PublicUrl, Traffic],
  exports: [PublicUrl, Traffic],
})
export class HttpModule {}
