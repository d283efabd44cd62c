import { setImmediate as nextTick } from 'node:timers/promises';

/** The ends of steps that earlier attempts have stored. The code gets them in the order in which the steps had ended. */
export class Deliveries {
  private readonly waiting: { order: number; deliver: () => void }[] = [];
  private isDelivering = false;

  /** Whether no end waits. */
  get isEmpty(): boolean {
    return this.waiting.length === 0;
  }

  /** Whether an end waits, or the code has just got one. */
  get isBusy(): boolean {
    return !this.isEmpty || this.isDelivering;
  }

  /** Resolves when all ends with a lower order are delivered. */
  turnOf(order: number): Promise<void> {
    return new Promise<void>((resolve) => {
      this.waiting.push({ order, deliver: resolve });
      if (!this.isDelivering) void this.deliverAll();
    });
  }

  private async deliverAll(): Promise<void> {
    this.isDelivering = true;
    // The code between two ends runs first, and may call further steps.
    await nextTick();
    while (this.waiting.length > 0) {
      this.waiting.sort((a, b) => a.order - b.order);
      this.waiting.shift()?.deliver();
      await nextTick();
    }
    this.isDelivering = false;
  }
}
