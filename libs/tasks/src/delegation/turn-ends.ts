import { isTerminal } from '@baton/a2a';
import type { ClaimedRun, RunKey } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import type { EndedTurn } from '../runs/event-writer.js';
import { Suspensions } from './suspensions.js';
import { TaskCanceler } from './task-canceler.js';

/** What follows when a worker is done with a run. */
@Injectable()
export class TurnEnds {
  constructor(
    private readonly dispatcher: RunDispatcher,
    private readonly suspensions: Suspensions,
    private readonly canceler: TaskCanceler,
  ) {}

  /** Its turn goes on when these tasks have ended theirs. */
  async suspend(run: RunKey, taskIds: readonly string[], signal: AbortSignal): Promise<void> {
    await this.suspensions.suspend(run, taskIds, signal);
  }

  /**
   * Its slot is for another run. If its turn has ended, the parent that waits for it goes on; if its task has,
   * so have its children. Never rejects.
   */
  async follow(
    { tenantId, taskId, parentTaskId }: Pick<ClaimedRun, 'tenantId' | 'taskId' | 'parentTaskId'>,
    ended: EndedTurn | undefined,
  ): Promise<void> {
    this.dispatcher.ended(tenantId);
    if (!ended) return;
    const isOver = isTerminal(ended.state) && ended.mayHaveChildren;
    await Promise.all([
      isOver && this.canceler.cancelChildren(tenantId, taskId),
      parentTaskId && this.suspensions.wake(tenantId, parentTaskId),
    ]);
  }
}
