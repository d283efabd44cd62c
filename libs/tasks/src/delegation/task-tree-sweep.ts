import { TaskTreeStore, type SweepCursor } from '@baton/database';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { SweepLeader } from '../core/sweep-leader.js';
import { RepeatedWork } from '../core/repeated-work.js';
import { TurnEnds } from '../turns/turn-ends.js';

/** Rows per sweep. The next sweep continues from there. */
const LIMIT = 500;

/**
 * Wakes suspended runs whose time has come. Wakes those that have nothing left to wait for, and cancels children whose parent
 * has ended: the process that should have done it has died, or could not reach Postgres. One worker does it for all (`SweepLeader`).
 */
@Injectable()
export class TaskTreeSweep extends RepeatedWork {
  private suspended: SweepCursor;
  private children: SweepCursor;

  constructor(
    private readonly taskTree: TaskTreeStore,
    private readonly turnEnds: TurnEnds,
    private readonly dispatcher: RunDispatcher,
    leader: SweepLeader,
    logger: Logger,
  ) {
    super({ log: { name: 'The sweep of suspended runs', logger } });
    leader.on('dueSleeps', () => this.wake());
    leader.on('waitsForTasks', () => this.wake());
    leader.on('openChildren', () => this.wake());
  }

  async runOnce(): Promise<void> {
    const due = await this.taskTree.wakeDue(LIMIT);
    const { woken, next } = await this.taskTree.wakeNext(this.suspended, LIMIT);
    this.suspended = next;
    if (due + woken > 0) this.dispatcher.refill();
    const found = await this.taskTree.abandonedChildren(this.children, LIMIT);
    this.children = found.next;
    for (const { tenantId, taskId } of found.children) await this.turnEnds.cancel(tenantId, null, taskId);
  }
}
