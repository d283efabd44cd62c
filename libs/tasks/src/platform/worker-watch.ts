import { Environment } from '@baton/config';
import { isAllowedName } from '@baton/a2a';
import { type StoredLoadFailure, type WorkerLoad, WorkerStore } from '@baton/database';
import { SingleFlight } from '@baton/postgres';
import { gauge, Metrics } from '@baton/telemetry';
import { Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import type { Viewer } from '../catalog/catalog.js';
const LIVE_WORKERS = gauge('baton_live_workers', 'Workers with a recent heartbeat');
const OLDEST_WAITING_RUN = gauge(
  'baton_oldest_waiting_run_seconds',
  'Age of the oldest accepted run that no worker has yet',
);

/** A worker without a heartbeat for this many leases is dead. A busy or restarting worker may miss a few. */
export const LIVE_LEASES = 3;

/** How many workers are alive, how long accepted runs have waited, and which agents in code could not be loaded. */
@Injectable()
export class WorkerWatch implements OnApplicationBootstrap {
  private readonly loading = new SingleFlight<WorkerLoad>();

  constructor(
    private readonly workers: WorkerStore,
    private readonly environment: Environment,
    private readonly metrics: Metrics,
  ) {}

  onApplicationBootstrap(): void {
    this.metrics.onScrape(async () => {
      const { liveWorkers, oldestWaitingSeconds } = await this.load();
      this.metrics.get(LIVE_WORKERS).set(liveWorkers);
      this.metrics.get(OLDEST_WAITING_RUN).set(oldestWaitingSeconds);
    });
  }

  /** Rejects when Postgres is away. */
  load(): Promise<WorkerLoad> {
    return this.loading.run(() => this.workers.load(this.environment.leaseMs * LIVE_LEASES));
  }

  /** The agents in code that would be there for the viewer if live workers could load them. */
  async loadFailures({ tenantId, agents }: Viewer): Promise<StoredLoadFailure[]> {
    const found = await this.workers.loadFailures(tenantId, this.environment.leaseMs * LIVE_LEASES);
    return found.filter(({ slug }) => slug === null || isAllowedName(agents, slug));
  }
}
