import { serializePayload } from '@baton/a2a';
import { TaskStore, type WokenTask } from '@baton/database';
import { Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { RepeatedWork } from '../core/repeated-work.js';
import { SweepLeader } from '../core/sweep-leader.js';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';

/** Tasks per statement. */
const LIMIT = 500;

/**
 * Continues tasks whose question has expired without an answer: they are working again, and the run that has asked continues on any
 * worker. One worker does it for all (`SweepLeader`). Its callers see the event `working`, as after an answer.
 */
@Injectable()
export class UnansweredTasks extends RepeatedWork {
  constructor(
    private readonly tasks: TaskStore,
    private readonly messaging: Messaging,
    private readonly dispatcher: RunDispatcher,
    leader: SweepLeader,
    logger: Logger,
  ) {
    super({ log: { name: 'The sweep of unanswered tasks', logger } });
    leader.on('unansweredTasks', () => this.wake());
  }

  async runOnce(): Promise<void> {
    const woken = await this.tasks.wakeAsking(LIMIT);
    if (woken.length === 0) return;
    this.dispatcher.refill();
    await Promise.all(woken.map((task) => this.publish(task)));
    const pushed = woken.filter(({ hasPushConfigs }) => hasPushConfigs);
    // If the queue is away, the sweep finds due configs.
    if (pushed.length > 0) await this.messaging.enqueuePushes(pushed).catch(() => undefined);
  }

  /** Readers who miss it find the event in the log. */
  private async publish({ tenantId, taskId, event: { sequence, payload } }: WokenTask): Promise<void> {
    const event = { sequence, attempt: 0, json: serializePayload(payload) };
    const signal = { lastSequence: sequence, events: [event] };
    await this.messaging.publishTask(tenantId, taskId, signal).catch(() => undefined);
  }
}
