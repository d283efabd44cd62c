import { Messaging } from '@baton/messaging';
import { RunStore } from '@baton/database';
import { Metrics } from '@baton/telemetry';
import { Module, type OnModuleInit } from '@nestjs/common';
import { HealthController } from './health.controller.js';
import { Readiness } from './readiness.js';
import { HttpModule } from '../http/http.module.js';

/** `/healthz`, `/readyz` and `/metrics`, and the gauges that are read on every scrape. */
@Module({ imports: [HttpModule], controllers: [HealthController], providers: [Readiness] })
export class HealthModule implements OnModuleInit {
  constructor(
    private readonly metrics: Metrics,
    private readonly messaging: Messaging,
    private readonly runs: RunStore,
  ) {}

  onModuleInit(): void {
    this.metrics.onScrape(async () => {
      const { waiting, active } = await this.messaging.queueDepth();
      this.metrics.queueDepth.set({ state: 'waiting' }, waiting);
      this.metrics.queueDepth.set({ state: 'active' }, active);
    });
    this.metrics.onScrape(async () => {
      this.metrics.runs.reset();
      for (const [state, count] of Object.entries(await this.runs.countByState())) {
        this.metrics.runs.set({ state }, count);
      }
    });
  }
}
