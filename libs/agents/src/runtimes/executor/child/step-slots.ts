import { setImmediate as nextTick } from 'node:timers/promises';
import { STEP_LIMITS } from '../step-protocol.js';
import type { Deliveries } from './deliveries.js';

/** The slots of functions of steps that run at the same time. */
export class StepSlots {
  private readonly queue: (() => void)[] = [];
  private inFlight = 0;

  constructor(private readonly deliveries: Deliveries) {}

  /** Whether a function runs. */
  get isBusy(): boolean {
    return this.inFlight > 0;
  }

  /** Resolves when the results of finished steps are delivered and a slot is free. */
  async take(): Promise<void> {
    while (!this.deliveries.isEmpty) await nextTick();
    if (this.inFlight >= STEP_LIMITS.inFlight) await new Promise<void>((resolve) => this.queue.push(resolve));
    this.inFlight += 1;
  }

  free(): void {
    this.inFlight -= 1;
    this.queue.shift()?.();
  }
}
