import { Environment } from '@baton/config';
import type { RunKey } from '@baton/database';
import { type EagerRun, Messaging, type RunConsumption, type RunJob } from '@baton/messaging';
import { clock, Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { EagerRunSeal } from './eager-run-seal.js';

/** Maximum number of ids that are kept. A worker begins fewer runs during a lease. */
const MAX_RECEIVED = 20_000;

/** The worker for which a new run may be claimed. */
export interface EagerClaim {
  workerId: string;
  leaseMs: number;
  /** When the worker may no longer trust that the run is its own, in ms since 1970. */
  startBefore: number;
}

/**
 * Eager start: the transaction that accepts a task also claims its run for a worker with a free slot. The worker starts the run
 * at once. The run does not go through the queue (docs/inside/adr/0050-acceptance-claims-runs.md).
 *
 * 1. Offer. Workers report their slots with their heartbeat. `RunDispatcher` reads them from Postgres and counts the free ones.
 * 2. Claim. `TurnAcceptance.createTask` gets a worker from `claimFor`. The transaction writes the run as `running`, with attempt 1,
 *    the worker's id and a lease. The task stays `submitted`.
 * 3. Send. After the commit, `send` publishes the run on the worker's channel in Redis, sealed (`EagerRunSeal`).
 * 4. Start. The worker receives the run (`receive`), and takes one of its slots. Until half of the lease is over, the seal proves that
 *    Postgres has given the run to this worker. Then, or without a seal, `RunExecutor.executeEager` reads the run
 *    (`RunStore.readEagerRun`). The read returns nothing if the run has begun or is no longer this worker's.
 *
 * If the worker does not start the run:
 *
 * - It has no free slot, or shuts down: the worker puts the run on the queue.
 * - It has no subscription: the API puts the run on the queue.
 * - The API lost its connection to Redis, so the outcome is unknown, or the API or the worker has died: the lease expires, and the sweeper
 *   queues the run. This costs an attempt, so `mayStartEagerly` leaves out agents with few.
 */
@Injectable()
export class EagerStart {
  /** Runs that this worker has received: Redis may deliver one twice, when a connection breaks. */
  private readonly received: LRUCache<string, true>;

  constructor(
    private readonly dispatcher: RunDispatcher,
    private readonly messaging: Messaging,
    private readonly environment: Environment,
    private readonly seal: EagerRunSeal,
    private readonly logger: Logger,
  ) {
    this.received = new LRUCache({
      maxSize: MAX_RECEIVED,
      sizeCalculation: () => 1,
      ttl: environment.leaseMs,
    });
  }

  /**
   * The worker for which a new run may be claimed. Undefined: no slot is known to be free, or
   * messaging cannot reach workers.
   */
  claimFor(): EagerClaim | undefined {
    if (!this.messaging.supportsEagerStart) return undefined;
    const workerId = this.dispatcher.takeWorker();
    const { leaseMs } = this.environment;
    return workerId === undefined ? undefined : { workerId, leaseMs, startBefore: clock.now() + leaseMs / 2 };
  }

  /**
   * Send a run to the worker for which it was claimed. Queues the run if the worker has no subscription. Never rejects.
   * @param json see `CreatedTask.claimed`
   */
  async send(run: RunJob, { workerId, startBefore }: EagerClaim, json: string): Promise<void> {
    const sealed = this.seal.seal(workerId, run, json, startBefore);
    const isReceived = await this.messaging.sendEagerRun(workerId, { ...run, sealed });
    if (isReceived) return;
    this.dispatcher.forgetWorker(workerId);
    // Undefined: unknown. The worker may have the run.
    if (isReceived === false) await this.requeue(run);
  }

  /**
   * Start the runs that were claimed for this worker, each in a slot of its own.
   * @param execute must not reject; gets the JSON of the run, if the seal proves that the run is this worker's
   * @returns unsubscribe, as of `Messaging.receiveEagerRuns`
   */
  receive(
    workerId: string,
    slots: Pick<RunConsumption, 'tryStart'>,
    execute: (run: EagerRun, json: string | undefined) => Promise<void>,
  ): () => Promise<void> {
    return this.messaging.receiveEagerRuns(workerId, (run) => {
      const json = this.seal.open(workerId, run);
      if (json !== undefined && this.isRepeated(run)) return;
      // Two API processes may have taken the same free slot.
      if (!slots.tryStart(run, () => execute(run, json))) void this.requeue(run);
    });
  }

  private isRepeated({ runId }: EagerRun): boolean {
    if (this.received.has(runId)) return true;
    this.received.set(runId, true);
    return false;
  }

  /** Queue a run that no worker has started. This does not count as a crash. Never rejects. */
  async requeue({ tenantId, taskId, runId }: EagerRun): Promise<void> {
    const run: RunKey = { tenantId, taskId, runId, attempt: 1 };
    await this.dispatcher.returnToQueue(run).catch((error: unknown) => {
      this.logger.warn('run could not be returned to the queue; the sweeper will enqueue it', {
        err: error,
        ...run,
      });
    });
  }
}
