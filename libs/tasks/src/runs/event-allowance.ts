import type { LoggedSize } from '@baton/database';
import type { TenantLimits } from '@baton/config';
import { TurnFailure } from '../core/turn-failure.js';

/** Limits of the output of agents. */
export type EventLimits = Pick<
  TenantLimits,
  'eventBytes' | 'eventsPerRun' | 'bytesPerRun' | 'eventsPerTask' | 'bytesPerTask'
>;

/**
 * The remaining budget of one attempt: the tenant's limits at its start. Limits of a run count the events of this
 * attempt. Limits of a task count its whole log.
 */
export class EventAllowance {
  private readonly run = { events: 0, bytes: 0 };
  private readonly task: { events: number; bytes: number };

  /** @param logged events and bytes that the log of the task has already */
  constructor(
    private readonly limits: EventLimits,
    logged: LoggedSize,
  ) {
    this.task = { ...logged };
  }

  /**
   * Take one more event of the agent.
   * @param json the event as it is stored
   * @throws TurnFailure if it goes over a limit; its message names the limit
   */
  spend(json: string): void {
    const { eventBytes, eventsPerRun, bytesPerRun, eventsPerTask, bytesPerTask } = this.limits;
    const bytes = Buffer.byteLength(json);
    for (const counted of [this.run, this.task]) {
      counted.events += 1;
      counted.bytes += bytes;
    }
    const { run, task } = this;
    if (isOver(run.events, eventsPerRun)) throw overRun('events', 'eventsPerRun', eventsPerRun);
    if (isOver(bytes, eventBytes)) {
      throw new TurnFailure(
        `The agent sent an event of ${bytes} bytes, and the limit eventBytes of this tenant is ${eventBytes}`,
        'eventBytes',
      );
    }
    if (isOver(run.bytes, bytesPerRun)) throw overRun('bytes', 'bytesPerRun', bytesPerRun);
    if (isOver(task.events, eventsPerTask)) throw overTask('events', 'eventsPerTask', eventsPerTask);
    if (isOver(task.bytes, bytesPerTask)) throw overTask('bytes', 'bytesPerTask', bytesPerTask);
  }
}

const isOver = (value: number, limit: number | null): limit is number => limit !== null && value > limit;

const overRun = (what: string, limit: keyof EventLimits, max: number): TurnFailure =>
  new TurnFailure(
    `The agent sent more ${what} than the limit ${limit} of this tenant allows, which is ${max}`,
    limit,
  );

const overTask = (what: string, limit: keyof EventLimits, max: number): TurnFailure =>
  new TurnFailure(
    `The task has more ${what} than the limit ${limit} of this tenant allows, which is ${max}; begin a new task`,
    limit,
  );
