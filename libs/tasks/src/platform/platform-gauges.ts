import { RunStore } from '@baton/database';
import { Messaging } from '@baton/messaging';
import { Metrics } from '@baton/telemetry';
import { Injectable, type OnModuleInit } from '@nestjs/common';

/** Brings the gauges that describe the whole platform up to date before each scrape. */
@Injectable()
export class PlatformGauges implements OnModuleInit {
  constructor(
    private readonly runs: RunStore,
    private readonly messaging: Messaging,
    private readonly metrics: Metrics,
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
