import { RunStore } from '@baton/database';
import type { RunJob } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';

/** How long a run is postponed while another is in quarantine: at least, and at most so much longer. */
const POSTPONE_MS = 500;
const SPREAD_MS = 1_000;
const NOTHING = (): void => undefined;

/**
 * Keeps suspects apart: runs whose workers have died again and again, or that have one attempt left after a crash.
 * A worker executes one of them at a time, so the run that kills its workers no longer takes the others with it that
 * happened to be beside it. Runs that have never crashed, or only once, go on beside a suspect.
 */
@Injectable()
export class Quarantine {
  private inside: string | undefined;

  constructor(
    private readonly runs: RunStore,
    private readonly dispatcher: RunDispatcher,
    private readonly logger: Logger,
  ) {}

  /**
   * Ask before a run is claimed. Never rejects: what Postgres does not tell is no reason against a run.
   * @returns what to call when the run has left this worker; undefined: do not claim it, it comes again
   */
  async enter({ tenantId, taskId, runId, attempt }: RunJob): Promise<(() => void) | undefined> {
    // Nobody has claimed it before, so nobody has died of it.
    if (attempt === 0) return NOTHING;
    try {
      // A job may come twice: one for a run that executes already is no suspect, and must not open the door.
      if (!(await this.runs.isSuspect(tenantId, runId))) return NOTHING;
      if (this.inside === runId) return undefined;
      if (this.inside === undefined) {
        this.inside = runId;
        this.logger.info('run in quarantine: its workers have died', { tenantId, taskId, runId, attempt });
        return () => (this.inside = undefined);
      }
      await this.runs.postpone(tenantId, runId, POSTPONE_MS + Math.round(Math.random() * SPREAD_MS));
      this.dispatcher.ended(tenantId);
      return undefined;
    } catch (error) {
      this.logger.warn('whether a run must be kept apart is not known', { err: error, tenantId, runId });
      return NOTHING;
    }
  }
}
