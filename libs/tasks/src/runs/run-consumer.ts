import { Environment } from '@baton/config';
import { RunStore } from '@baton/database';
import { type Consumer, Messaging, type RunJob } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { type BeforeApplicationShutdown, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { ActiveRuns } from './active-runs.js';
import { RunExecutor } from './run-executor.js';
import { WorkerIdentity } from './worker-presence.js';

/** How long a run is postponed while another is in quarantine: at least, and at most so much longer. */
const POSTPONE_MS = 500;
const SPREAD_MS = 1_000;
const NOTHING = (): void => undefined;

/**
 * Keeps suspects apart: runs whose workers have died again and again, or that have one attempt left after a crash. A
 * worker executes one suspect at a time, so that a run that kills its workers does not take other suspects with it. Runs
 * that have never crashed, or only once, go on beside a suspect.
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

/** Takes runs from the queue while the worker lives. */
@Injectable()
export class RunConsumer implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private consumer: Consumer | undefined;

  constructor(
    private readonly messaging: Messaging,
    private readonly executor: RunExecutor,
    private readonly quarantine: Quarantine,
    private readonly active: ActiveRuns,
    private readonly environment: Environment,
    private readonly worker: WorkerIdentity,
    private readonly logger: Logger,
  ) {}

  onApplicationBootstrap(): void {
    const { workerConcurrency } = this.environment;
    this.consumer = this.messaging.consumeRuns(workerConcurrency, (job) => this.take(job));
    this.logger.info('worker takes runs', { workerId: this.worker.id, workerConcurrency });
  }

  private async take(job: RunJob): Promise<void> {
    const leave = await this.quarantine.enter(job);
    if (!leave) return;
    try {
      await this.executor.execute(job);
    } finally {
      leave();
    }
  }

  /** Take no more runs, let those in hand finish within the grace time, hand the rest back to the queue. */
  async beforeApplicationShutdown(): Promise<void> {
    if (!this.consumer) return;
    const finished = this.consumer.close();
    const grace = new AbortController();
    const graceOver = delay(this.environment.workerGraceMs, undefined, { signal: grace.signal });
    await Promise.race([finished, graceOver.catch(() => undefined)]);
    grace.abort();
    if (this.active.size > 0) {
      this.logger.info('handing runs back', { runs: this.active.size });
      this.active.stopAll('shutdown');
    }
    await finished;
  }
}
