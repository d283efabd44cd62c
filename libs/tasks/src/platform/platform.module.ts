import { Module } from '@nestjs/common';
import { PlatformGauges } from './platform-gauges.js';
import { PlatformReadiness } from './platform-readiness.js';
import { WorkerWatch } from './worker-watch.js';

/** The state of the whole platform: readiness, gauges, live workers. API and worker share it. */
@Module({
  providers: [PlatformGauges, PlatformReadiness, WorkerWatch],
  exports: [PlatformReadiness, WorkerWatch],
})
export class PlatformModule {}
