import { RunStore } from '@baton/database';
import { type RunJob } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';

/** Minimum time for which a run is postponed while another is in quarantine. */
const POSTPONE_MS = 500;
/** Maximum random time in addition, so that postponed runs do not all return at once. */
const SPREAD_MS = 1_000;
const NOTHING = (): void => undefined;

/**
 * Keeps suspects apart. A suspect is a run whose workers have died twice or more, or that has one attempt left after a
 * crash. A worker executes one suspect at a time. So a run that kills its workers does not crash other suspects. Other
 * runs execute beside a suspect.
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
   * Call this before a run is claimed. Never rejects: if Postgres does not answer, the run counts as harmless.
   * @returns a function to call when the run has left this worker. Undefined: do not claim it, it comes again
   */
  async enter({ tenantId, taskId, runId, attempt }: RunJob): Promise<(() => void) | undefined> {
    // It was never claimed before, so it has never crashed.
    if (attempt === 0) return NOTHING;
    try {
      // A job may arrive twice. The second job of a running suspect must not end its quarantine.
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
      this.logger.warn('could not read whether a run is in quarantine', { err: error, tenantId, runId });
      return NOTHING;
    }
  }
}
