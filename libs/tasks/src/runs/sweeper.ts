import { serializePayload } from '@baton/a2a';
import { Environment } from '@baton/config';
import { RunStore, type RunToEnqueue, type SweepFindings } from '@baton/database';
import { Messaging } from '@baton/messaging';
import { MAX_SPREAD, counter, Logger, Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { givenUpText } from '../core/given-up-text.js';
import { SweepLeader } from '../core/sweep-leader.js';
import { RepeatedWork } from '../core/repeated-work.js';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { LIVE_LEASES } from '../platform/worker-watch.js';
import { ReclaimGuard } from './reclaim-guard.js';

const DEAD_LETTERS = counter(
  'baton_dead_letters_total',
  'Runs that have killed their worker on every attempt: their tasks have failed',
);
const REQUEUED = counter(
  'baton_runs_requeued_total',
  'Runs that the sweeper put on the queue again: their worker has died, or the queue has lost them',
  ['reason'],
  [{ reason: 'lease expired' }, { reason: 'missing on the queue' }],
);

/**
 * Time that a worker whose connection has ended has to connect and extend its leases again, in heartbeats. The lease thread notices
 * the loss within one.
 */
const LATE_BEAT = 4 / 3;

/** Rows per sweep, so that a sweep stays short. */
const LIMIT = 500;

/** The shortest pause between two sweeps, as a share of the usual one. */
const SHORTEST = 1 / 4;
/** After the end of a lease, in ms: timers may be a little early. */
const AFTER_MS = 10;

/**
 * Finds five kinds of runs: runs whose worker died, runs that kill every worker, queued runs that are on no queue, parked runs
 * whose agent has other code now, and runs that are not the active run of their task.
 * One worker does it for all (`SweepLeader`). After an outage of Postgres the live workers first get the time to extend their
 * leases (`ReclaimGuard`).
 */
@Injectable()
export class Sweeper extends RepeatedWork {
  private readonly reclaimGuard: ReclaimGuard;
  private nextMs = Infinity;
  /** Rest of a lease with which a run is lost if its worker's connection has ended, in ms. */
  private readonly orphanLeaseMs: number;

  constructor(
    private readonly runs: RunStore,
    private readonly messaging: Messaging,
    private readonly dispatcher: RunDispatcher,
    private readonly leader: SweepLeader,
    private readonly metrics: Metrics,
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {
    super({ everyMs: environment.sweepMs, log: { name: 'The sweep of runs', logger } });
    this.orphanLeaseMs = environment.leaseMs - Math.ceil(environment.leaseHeartbeatMs * LATE_BEAT);
    this.reclaimGuard = new ReclaimGuard(environment.leaseMs, environment.sweepMs * MAX_SPREAD);
  }

  /**
   * Postgres has taken a heartbeat of this worker, or has not. The next sweeping worker decides by it whether to
   * trust leases.
   */
  noteBeat(isTaken: boolean): void {
    this.reclaimGuard[isTaken ? 'answered' : 'failed'](performance.now());
  }

  /** This worker is the sweep leader from now on. The one before has died, and the runs of it need not wait longer. */
  takeOver(): void {
    this.wake();
  }

  /** One sweep, if this worker sweeps. Rejects when Postgres is away; a queue that is away is left to the next sweep. */
  async runOnce(): Promise<void> {
    this.nextMs = Infinity;
    if (!this.leader.isLeader) return;
    const { staleQueuedRunMs } = this.environment;
    const found = await this.findWork();
    this.nextMs = found.nextMs === null ? Infinity : found.nextMs + AFTER_MS;
    if (found.expiredRuns || found.staleQueuedRuns) await this.endStrayRuns(found.at);
    if (this.reclaimGuard.mayReclaim) {
      if (found.orphanedRuns) await this.endLeasesOfDead(found.at);
      if (found.expiredRuns || found.orphanedRuns) {
        await this.failPoisoned(found.at);
        this.enqueue(await this.runs.reclaimExpired(LIMIT, found.at), 'lease expired');
      }
    }
    if (found.staleQueuedRuns) {
      this.enqueue(await this.runs.takeStaleQueued(staleQueuedRunMs, LIMIT), 'missing on the queue');
    }
    const resumed = found.parkedRuns && (await this.resumeParked()) > 0;
    // A process may have died after it freed a dispatch slot and before a waiting run got it.
    if (found.waitingRuns || resumed) this.dispatcher.refill();
  }

  /** Ends the leases of workers whose connection has ended. */
  private async endLeasesOfDead(at: string): Promise<void> {
    const workers = await this.runs.endOrphanedLeases(this.orphanLeaseMs, at);
    const workerIds = [...new Set(workers)];
    if (workerIds.length > 0) {
      this.logger.warn('workers have died: their connections have ended', {
        workerIds,
        runs: workers.length,
      });
    }
  }

  /** No worker can claim such a run, and it holds a slot of its tenant. */
  private async endStrayRuns(at: string): Promise<void> {
    for (const run of await this.runs.endStrayRuns(this.environment.staleQueuedRunMs, LIMIT, at)) {
      this.logger.error('run canceled: it is not the active run of its task', { ...run });
    }
  }

  /** Runs that other code had parked continue. @returns how many */
  private async resumeParked(): Promise<number> {
    const count = await this.runs.wakeParked(this.environment.leaseMs * LIVE_LEASES, LIMIT);
    if (count > 0)
      this.logger.info('parked runs are resumed: the code of their agent has changed', { count });
    return count;
  }

  /** A lease that ends sooner gets its own sweep. */
  protected override nextPauseMs(): number {
    const { sweepMs } = this.environment;
    return Math.min(super.nextPauseMs() ?? sweepMs, Math.max(this.nextMs, sweepMs * SHORTEST));
  }

  private async findWork(): Promise<SweepFindings> {
    try {
      const found = await this.leader.sweep(this.environment.staleQueuedRunMs, this.orphanLeaseMs);
      this.noteBeat(true);
      return found;
    } catch (error) {
      this.noteBeat(false);
      throw error;
    }
  }

  private async failPoisoned(expiredAt: string): Promise<void> {
    for (const run of await this.runs.failPoisoned(LIMIT, expiredAt, givenUpText)) {
      const { tenantId, taskId, runId, attempt, event } = run;
      this.metrics.get(DEAD_LETTERS).inc();
      this.logger.error('run failed: its worker died on every attempt', { tenantId, taskId, runId, attempt });
      const published = { sequence: event.sequence, attempt, json: serializePayload(event.payload) };
      await this.messaging.publishTask(tenantId, taskId, {
        lastSequence: event.sequence,
        events: [published],
      });
      await this.runs.keepArtifacts(tenantId, taskId);
    }
  }

  /** Not awaited: a queue that is away must not keep the sweeper from asking Postgres. */
  private enqueue(runs: RunToEnqueue[], why: 'lease expired' | 'missing on the queue'): void {
    if (runs.length === 0) return;
    this.metrics.get(REQUEUED).inc({ reason: why }, runs.length);
    this.logger.info('runs enqueued again', { count: runs.length, why });
    this.messaging.enqueueRuns(runs).catch((error: unknown) => {
      this.logger.warn('queue is away; a later sweep enqueues the runs', { err: error, count: runs.length });
    });
  }
}
