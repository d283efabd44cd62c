import type { CallContext } from '@baton/a2a';
import { RunStore } from '@baton/database';
import { Injectable } from '@nestjs/common';
import { actorOf } from '../core/actor.js';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { TaskFinder } from './task-finder.js';

/** Tasks that wait for other code of their agent. */
@Injectable()
export class ParkedTasks {
  constructor(
    private readonly runs: RunStore,
    private readonly finder: TaskFinder,
    private readonly dispatcher: RunDispatcher,
  ) {}

  /**
   * Lets a parked task continue now, with the code that is there.
   * @param call of a caller who may write to the task
   * @returns whether it was parked
   */
  async resume(call: CallContext, id: string): Promise<boolean> {
    const { task } = await this.finder.find(call, id, { historyLength: 0, artifacts: false });
    const isResumed = await this.runs.resume(call.tenantId, task.id, actorOf(call));
    if (isResumed) this.dispatcher.refill();
    return isResumed;
  }
}
