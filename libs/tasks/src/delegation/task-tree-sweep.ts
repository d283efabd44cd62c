import { Environment } from '@baton/config';
import { TaskTreeStore, type SweepCursor } from '@baton/database';
import { FailureLog, Logger } from '@baton/telemetry';
import { Injectable, type OnModuleDestroy, type OnModuleInit } from '@nestjs/common';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { RepeatedWork } from '../core/repeated-work.js';
import { TurnEnds } from '../turns/turn-ends.js';

/** Rows per sweep, so that one sweep stays short; the next one goes on from there. */
const LIMIT = 500;

/**
 * Finds what nobody has told: suspended runs with nothing left to wait for, and children whose parent has ended.
 * Whoever should have told them has died, or could not reach Postgres. Every worker sweeps.
 */
@Injectable()
export class TaskTreeSweep implements OnModuleInit, OnModuleDestroy {
  private readonly repeated: RepeatedWork;
  private suspended: SweepCursor;
  private children: SweepCursor;

  constructor(
    private readonly taskTree: TaskTreeStore,
    private readonly turnEnds: TurnEnds,
    private readonly dispatcher: RunDispatcher,
    environment: Environment,
    logger: Logger,
  ) {
    this.repeated = new RepeatedWork({
      everyMs: environment.sweepMs,
      work: () => this.sweep(),
      log: new FailureLog('The sweep of suspended runs', logger),
    });
  }

  onModuleInit(): void {
    this.repeated.start();
  }

  async onModuleDestroy(): Promise<void> {
    await this.repeated.stop();
  }

  private async sweep(): Promise<void> {
    const { woken, next } = await this.taskTree.wakeNext(this.suspended, LIMIT);
    this.suspended = next;
    if (woken > 0) this.dispatcher.refill();
    const found = await this.taskTree.abandonedChildren(this.children, LIMIT);
    this.children = found.next;
    for (const { tenantId, taskId } of found.children) await this.turnEnds.cancel(tenantId, null, taskId);
  }
}
