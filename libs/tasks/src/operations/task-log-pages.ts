import { type ConsoleLineRecord, ConsoleLineStore, TaskStore } from '@baton/database';
import { Injectable } from '@nestjs/common';

/** Maximum number of events of one page of times. */
const MAX_TIMES = 1_000;

/** Pages of the console of a task, and of the times of its events. */
@Injectable()
export class TaskLogPages {
  constructor(
    private readonly tasks: TaskStore,
    private readonly consoles: ConsoleLineStore,
  ) {}

  /**
   * Lines after a position that the agent's code has written to its console, in order.
   * @returns `more`: whether there are further ones
   */
  async consoleLines(
    tenantId: string,
    taskId: string,
    { after, limit }: { after: number; limit: number },
  ): Promise<{ lines: ConsoleLineRecord[]; more: boolean }> {
    const found = await this.consoles.read(tenantId, taskId, { after, limit: limit + 1 });
    return { lines: found.slice(0, limit), more: found.length > limit };
  }

  /**
   * When the events after a sequence were stored, in order, at most 1,000. The events themselves do not say it.
   * @returns `more`: whether there may be further ones
   */
  async eventTimes(
    tenantId: string,
    taskId: string,
    after: number,
  ): Promise<{ times: { sequence: number; at: Date }[]; more: boolean }> {
    const times = await this.tasks.eventTimes(tenantId, taskId, after, MAX_TIMES);
    return { times, more: times.length === MAX_TIMES };
  }
}
