/** Slots for calls under way: a maximum of each holder, and of all. */
export class CallSlots {
  private readonly byHolder = new Map<string, number>();
  private taken = 0;

  constructor(
    private readonly maxOfHolder: number,
    private readonly max: number,
  ) {}

  /** @returns what gives the slot back, to be called once; undefined: all are taken */
  take(holder: string): (() => void) | undefined {
    const ofHolder = this.byHolder.get(holder) ?? 0;
    if (ofHolder >= this.maxOfHolder || this.taken >= this.max) return undefined;
    this.byHolder.set(holder, ofHolder + 1);
    this.taken += 1;
    return () => {
      this.taken -= 1;
      const left = (this.byHolder.get(holder) ?? 1) - 1;
      if (left > 0) this.byHolder.set(holder, left);
      else this.byHolder.delete(holder);
    };
  }
}
