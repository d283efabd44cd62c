import { RunStore } from '@baton/database';
import { Messaging } from '@baton/messaging';
import { gauge, Metrics } from '@baton/telemetry';
import { Injectable, type OnModuleInit } from '@nestjs/common';

const QUEUE_DEPTH = gauge('baton_queue_depth', 'Runs on the queue by state', ['state']);
const RUNS = gauge('baton_runs', 'Runs in Postgres by state', ['state']);

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
      this.metrics.of(QUEUE_DEPTH).set({ state: 'waiting' }, waiting);
      this.metrics.of(QUEUE_DEPTH).set({ state: 'active' }, active);
    });
    this.metrics.onScrape(async () => {
      this.metrics.of(RUNS).reset();
      for (const [state, count] of Object.entries(await this.runs.countByState())) {
        this.metrics.of(RUNS).set({ state }, count);
      }
    });
  }
}
