import { ProtocolError } from '@baton/a2a';
import { type CanceledSteps, CompensationStore } from '@baton/database';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { RepeatedWork } from '../core/repeated-work.js';
import { SweepLeader } from '../core/sweep-leader.js';
import { TaskForks } from './task-forks.js';

/** Tasks at a time. */
const BATCH = 20;
/** A taken task that is not done is due again after this time, in ms: its worker has died, or the task was refused. */
const RETAKE_MS = 20_000;
/** Longest pause between two tries for a task whose agent is disabled, in ms. */
const MAX_PAUSE_MS = 600_000;

/**
 * Makes the tasks that undo the finished steps of canceled ones (docs/inside/adr/0080-undo-after-a-cancel.md). One worker does it for all
 * (`SweepLeader`). If it dies, another worker takes the task again, and finds the task that the first one made.
 */
@Injectable()
export class CanceledStepsSweep extends RepeatedWork {
  constructor(
    private readonly compensations: CompensationStore,
    private readonly forks: TaskForks,
    leader: SweepLeader,
    private readonly logger: Logger,
  ) {
    super({ log: { name: 'The sweep of canceled tasks with steps to undo', logger } });
    leader.on('dueCompensations', () => this.wake());
  }

  async runOnce(): Promise<void> {
    const canceled = await this.compensations.takeCanceled(BATCH, RETAKE_MS);
    for (const task of canceled) await this.undo(task);
  }

  private async undo({ tenantId, taskId }: CanceledSteps): Promise<void> {
    try {
      const undo = await this.forks.undoCanceled(tenantId, taskId);
      if (undo) this.logger.info('a task undoes the steps of a canceled task', { tenantId, taskId, undo });
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.logger.warn('steps of a canceled task are not undone yet', { err: error, tenantId, taskId });
      // A slot may become free at any moment, so the task is due again after `RETAKE_MS`. A disabled agent waits for a person.
      if (error.kind !== 'limit-exceeded') await this.compensations.postpone(tenantId, taskId, MAX_PAUSE_MS);
      return;
    }
    await this.compensations.forget(tenantId, taskId);
  }
}
