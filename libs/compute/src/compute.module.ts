import { Environment } from '@baton/config';
import { Metrics } from '@baton/telemetry';
import { Global, Inject, Module, type OnApplicationShutdown } from '@nestjs/common';
import { ComputePool } from './compute-pool.js';

/** Provides the ComputePool of a process to every module. */
@Global()
@Module({
  providers: [
    {
      provide: ComputePool,
      useFactory: ({ computeThreads: threads, computeTimeoutMs: timeoutMs }: Environment, metrics: Metrics) =>
        new ComputePool({ threads, timeoutMs, metrics }),
      inject: [Environment, Metrics],
    },
  ],
  exports: [ComputePool],
})
export class ComputeModule implements OnApplicationShutdown {
  constructor(@Inject(ComputePool) private readonly pool: ComputePool) {}

  async onApplicationShutdown(): Promise<void> {
    await this.pool.close();
  }
}
