import { Environment } from '@baton/config';
import { type WorkerLoad, WorkerStore } from '@baton/database';
import { gauge, Logger, Metrics } from '@baton/telemetry';
import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { RepeatedWork } from '../core/repeated-work.js';

const LIVE_WORKERS = gauge('baton_live_workers', 'Workers that are alive');
const OLDEST_WAITING_RUN = gauge('baton_oldest_waiting_run_seconds', 'Age of the oldest waiting run');

/** A worker that was silent for so many leases does not live: one that is busy or restarts gets the benefit of doubt. */
const LIVE_LEASES = 3;

/**
 * Notices that no worker is alive: tasks are accepted and nobody executes them. The log says so once when it begins
 * and once when it ends; the metrics and `/readyz` say so meanwhile.
 */
@Injectable()
export class WorkerWatch implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly repeated: RepeatedWork;
  private checksWithout = 0;
  private aloneSince = 0;

  constructor(
    private readonly workers: WorkerStore,
    private readonly environment: Environment,
    private readonly metrics: Metrics,
    private readonly logger: Logger,
  ) {
    this.repeated = new RepeatedWork({
      everyMs: environment.leaseMs,
      work: () => this.check(),
      // No log: whoever needs Postgres says that it is away.
    });
  }

  onApplicationBootstrap(): void {
    this.metrics.onScrape(async () => {
      const { liveWorkers, oldestWaitingSeconds } = await this.load();
      this.metrics.of(LIVE_WORKERS).set(liveWorkers);
      this.metrics.of(OLDEST_WAITING_RUN).set(oldestWaitingSeconds);
    });
    this.repeated.start();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.repeated.stop();
  }

  /** Rejects when Postgres is away. */
  load(): Promise<WorkerLoad> {
    return this.workers.load(this.environment.leaseMs * LIVE_LEASES);
  }

  private async check(): Promise<void> {
    const { liveWorkers, oldestWaitingSeconds } = await this.load();
    if (liveWorkers > 0) {
      if (this.checksWithout > 1) {
        const forMs = Math.round(performance.now() - this.aloneSince);
        this.logger.info('workers are alive again', { liveWorkers, forMs, oldestWaitingSeconds });
      }
      this.checksWithout = 0;
      return;
    }
    this.checksWithout += 1;
    if (this.checksWithout === 1) this.aloneSince = performance.now();
    // At the second check: where everything starts at the same time, an API may be up first.
    if (this.checksWithout === 2) {
      this.logger.error('no worker is alive: tasks are accepted and wait', { oldestWaitingSeconds });
    }
  }
}
