import { Environment } from '@baton/config';
import type { NewTask, RunKey } from '@baton/database';
import { type EagerRun, Messaging, type RunConsumption, type RunJob } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';

/**
 * Eager start: the transaction that accepts a task also claims its run for a worker with a free slot. The worker starts the run
 * at once. The run does not go through the queue (docs/inside/adr/0050-acceptance-claims-runs.md).
 *
 * 1. Offer. Workers report their slots with their heartbeat. `RunDispatcher` reads them from Postgres and counts the free ones.
 * 2. Claim. `TurnAcceptance.createTask` gets a worker from `claimFor`. The transaction writes the run as `running`, with attempt 1,
 *    the worker's id and a lease. The task stays `submitted`.
 * 3. Send. After the commit, `send` publishes the ids of the run on the worker's channel in Redis.
 * 4. Start. The worker receives the ids (`receive`) and takes one of its slots. `RunExecutor.executeEager` reads the run
 *    (`RunStore.readEagerRun`). Postgres decides: the read returns nothing if the run has begun or is no longer this worker's.
 *
 * If the worker does not start the run:
 *
 * - It has no free slot, or shuts down: the worker puts the run on the queue.
 * - It has no subscription: the API puts the run on the queue.
 * - The API lost its connection to Redis and cannot know, or the API or the worker has died: the lease expires, and the sweeper
 *   queues the run. This costs an attempt, so `mayStartEagerly` leaves out agents with few.
 */
@Injectable()
export class EagerStart {
  constructor(
    private readonly dispatcher: RunDispatcher,
    private readonly messaging: Messaging,
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {}

  /**
   * The worker for which a new run may be claimed, and the length of its lease. Undefined: no slot is known to be free, or
   * messaging cannot reach workers.
   */
  claimFor(): NewTask['claimFor'] {
    if (!this.messaging.supportsEagerStart) return undefined;
    const workerId = this.dispatcher.takeWorker();
    return workerId === undefined ? undefined : { workerId, leaseMs: this.environment.leaseMs };
  }

  /** Send a run to the worker for which it was claimed. Queues the run if the worker has no subscription. Never rejects. */
  async send(run: RunJob, workerId: string): Promise<void> {
    const isReceived = await this.messaging.sendEagerRun(workerId, run);
    if (isReceived) return;
    this.dispatcher.forgetWorker(workerId);
    // Undefined: unknown. The worker may have the run.
    if (isReceived === false) await this.requeue(run);
  }

  /**
   * Start the runs that were claimed for this worker, each in a slot of its own.
   * @param execute must not reject
   * @returns unsubscribe, as of `Messaging.receiveEagerRuns`
   */
  receive(
    workerId: string,
    slots: Pick<RunConsumption, 'tryStart'>,
    execute: (run: EagerRun) => Promise<void>,
  ): () => Promise<void> {
    return this.messaging.receiveEagerRuns(workerId, (run) => {
      // Two API processes may have taken the same free slot.
      if (!slots.tryStart(() => execute(run), run.mayUseReserved)) void this.requeue(run);
    });
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
