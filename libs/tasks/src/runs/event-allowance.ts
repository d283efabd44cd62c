import type { TenantLimits } from '@baton/identity';
import { TurnFailure } from './turn-output.js';

/** What one attempt of a run may still say: the tenant's limits of events, as they were when it began. */
export class EventAllowance {
  private events = 0;

  constructor(private readonly limits: Pick<TenantLimits, 'eventBytes' | 'eventsPerRun'>) {}

  /**
   * Take one more event of the agent.
   * @param json the event as it is stored
   * @throws TurnFailure if it goes over a limit; its message names the limit
   */
  take(json: string): void {
    const { eventBytes, eventsPerRun } = this.limits;
    this.events += 1;
    if (eventsPerRun !== null && this.events > eventsPerRun) {
      throw new TurnFailure(
        `The agent sent more events than the limit eventsPerRun of this tenant allows, which is ${eventsPerRun}`,
        'eventsPerRun',
      );
    }
    if (eventBytes === null) return;
    const bytes = Buffer.byteLength(json);
    if (bytes <= eventBytes) return;
    throw new TurnFailure(
      `The agent sent an event of ${bytes} bytes, and the limit eventBytes of this tenant is ${eventBytes}`,
      'eventBytes',
    );
  }
}
