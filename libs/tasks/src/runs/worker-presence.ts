import { Environment } from '@baton/config';
import { type StoredLoadFailure, releaseOf, type WorkerProcess, WorkerStore } from '@baton/database';
import { MAX_SPREAD, FailureLog, Logger } from '@baton/telemetry';
import { type BeforeApplicationShutdown, Injectable } from '@nestjs/common';
import { hostname } from 'node:os';
import { SweepLeader } from '../core/sweep-leader.js';
import { RepeatedWork } from '../core/repeated-work.js';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { ActiveRuns } from './active-runs.js';
import { ReservedSlots } from './reserved-slots.js';
import { Sweeper } from './sweeper.js';
import { WorkerIdentity } from './worker-identity.js';

/** Heartbeats per lease. */
const BEATS = 3;
/** After this many missed heartbeats another worker takes over the sweeps. */
const MISSED_BEATS = 1.5;
/** The slots of a worker without a heartbeat for this many leases do not count. */
const SLOT_LEASES = 2;

/**
 * Records that this worker is alive and how many runs it can execute. Learns whether it is the sweep leader, and its share of the
 * reserved slots.
 */
@Injectable()
export class WorkerPresence extends RepeatedWork implements BeforeApplicationShutdown {
  private readonly worker: WorkerProcess;
  /** Longest pause between two heartbeats, in ms. */
  private readonly beatMs: number;
  private isLeaving = false;
  private readonly failures: FailureLog;

  constructor(
    private readonly workers: WorkerStore,
    private readonly dispatcher: RunDispatcher,
    private readonly leader: SweepLeader,
    private readonly sweeper: Sweeper,
    private readonly reserved: ReservedSlots,
    private readonly active: ActiveRuns,
    environment: Environment,
    logger: Logger,
    { id }: WorkerIdentity,
  ) {
    const { workerConcurrency: concurrency, leaseMs } = environment;
    const beatMs = leaseMs / BEATS;
    super({ everyMs: beatMs / MAX_SPREAD });
    this.beatMs = beatMs;
    this.failures = new FailureLog('The heartbeat', logger);
    this.worker = { id, host: hostname(), pid: process.pid, concurrency, version: releaseOf() };
  }

  // oxlint-disable-next-line typescript/no-misused-promises -- Nest waits for it
  override async onApplicationBootstrap(): Promise<void> {
    await this.logged(() => this.seen()).catch(() => undefined);
    this.active.onSession = () => this.wake();
    await this.logged(() => this.workers.forgetDead()).catch(() => undefined);
    this.dispatcher.refill();
    super.onApplicationBootstrap();
  }

  /** One heartbeat. */
  runOnce(): Promise<void> {
    return this.logged(() => this.seen());
  }

  /** Publishes which agents in code this worker could not load, while it lives. */
  reportFailures(failures: readonly StoredLoadFailure[]): Promise<void> {
    return this.workers.reportFailures(this.worker, failures);
  }

  /** Publishes which code of these agents this worker runs, while it lives. */
  reportCodes(agents: readonly { slug: string; code: string }[]): Promise<void> {
    const codes = Object.fromEntries(agents.map(({ slug, code }) => [slug, code]));
    return this.workers.reportCodes(this.worker, codes);
  }

  /** It is alive while its runs end. */
  override async onModuleDestroy(): Promise<void> {}

  /** It takes no more runs from now on. */
  async beforeApplicationShutdown(): Promise<void> {
    this.isLeaving = true;
    this.leader.assign(false);
    await super.onModuleDestroy();
    await this.logged(() => this.workers.remove(this.worker.id)).catch(() => undefined);
  }

  private async seen(): Promise<void> {
    try {
      const vitals = { memoryBytes: process.memoryUsage.rss(), reservedSlots: this.reserved.count };
      const punctualMs = Math.ceil(this.beatMs * MISSED_BEATS);
      // As in `RunDispatcher`. A worker that is late for one heartbeat still has its slots.
      const liveMs = Math.ceil(this.beatMs * BEATS * SLOT_LEASES);
      const self = { ...this.worker, ...vitals, session: this.active.session };
      const { isEldest, ...others } = await this.workers.seen(self, punctualMs, liveMs);
      this.reserved.shareWith(others);
      const wasLeader = this.leader.isLeader;
      this.leader.assign(isEldest && !this.isLeaving);
      this.sweeper.noteBeat(true);
      if (this.leader.isLeader && !wasLeader) this.sweeper.takeOver();
    } catch (error) {
      this.sweeper.noteBeat(false);
      throw error;
    }
  }

  private async logged(work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.failures.worked();
    } catch (error) {
      this.failures.failed(error);
      throw error;
    }
  }
}
