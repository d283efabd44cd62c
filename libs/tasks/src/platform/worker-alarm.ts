import { Environment } from '@baton/config';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { RepeatedWork } from '../core/repeated-work.js';
import { WorkerWatch } from './worker-watch.js';

/**
 * Notices in an API process that no worker is alive: tasks are accepted and wait. It logs this once when it begins and once
 * when it ends. Meanwhile the metrics and `/readyz` show it.
 */
@Injectable()
export class WorkerAlarm extends RepeatedWork {
  private checksWithout = 0;
  private aloneSince = 0;

  constructor(
    private readonly workers: WorkerWatch,
    environment: Environment,
    private readonly logger: Logger,
  ) {
    // Without a log: other work logs that Postgres is away.
    super({ everyMs: environment.leaseMs });
  }

  async runOnce(): Promise<void> {
    const { liveWorkers, oldestWaitingSeconds } = await this.workers.load();
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
    // At the second check: an API may start before the workers.
    if (this.checksWithout === 2) {
      this.logger.error('no worker is alive: tasks are accepted and wait', { oldestWaitingSeconds });
    }
  }
}
