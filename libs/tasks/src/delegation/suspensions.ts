import { FamilyStore, type RunKey, isTransient } from '@baton/database';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';

const RETRY_MS = 100;

/** Lets runs wait for other tasks without a worker, and has them go on (docs/inside/adr/0007-suspended-runs.md). */
@Injectable()
export class Suspensions {
  constructor(
    private readonly families: FamilyStore,
    private readonly dispatcher: RunDispatcher,
    private readonly logger: Logger,
  ) {}

  /**
   * Let the run wait until these tasks have ended their turns. Tried until Postgres has answered, or `signal` is
   * aborted; a run that another attempt owns stays as it is.
   */
  async suspend(run: RunKey, taskIds: readonly string[], signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await this.families.suspend(run, taskIds);
        break;
      } catch (error) {
        if (signal.aborted || !isTransient(error)) throw error;
        await delay(RETRY_MS);
      }
    }
    // Those it waits for may have ended before it was suspended, and have found nobody to wake.
    await this.wake(run.tenantId, run.taskId);
  }

  /** A task that the suspended run of this one may wait for has ended its turn. Never rejects: the sweep wakes it then. */
  async wake(tenantId: string, taskId: string): Promise<void> {
    try {
      if (await this.families.wake(tenantId, taskId)) this.dispatcher.refill();
    } catch (error) {
      this.logger.warn('not woken; the sweep will do it', { err: error, tenantId, taskId });
    }
  }
}
