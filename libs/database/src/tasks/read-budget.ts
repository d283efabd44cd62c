import type { ReadMemory } from '@baton/a2a';

/** How much may still be read for one request, in bytes of JSON. */
export class ReadBudget {
  private asked: Promise<boolean> | undefined;

  /** @param memory asked once for the expected bytes, before more is read than came with the rows of tasks */
  constructor(
    private left: number,
    private readonly whole?: ReadBudget,
    private readonly memory?: { of: ReadMemory; expected: number },
  ) {}

  /** Whether more may be read than came with the rows. @throws the error of the memory */
  granted(): Promise<boolean> {
    if (this.whole) return this.whole.granted();
    const { of, expected } = this.memory ?? {};
    this.asked ??= of?.take(Math.min(expected ?? 0, this.left)) ?? Promise.resolve(true);
    return this.asked;
  }

  /** Resolves when this many bytes may be parsed. */
  async turn(bytes: number): Promise<void> {
    await (this.whole?.turn(bytes) ?? this.memory?.of.turn(bytes));
  }

  get bytes(): number {
    return Math.floor(Math.min(this.left, this.whole?.bytes ?? Infinity));
  }

  /** @returns whether this much was left; if so it is used up */
  take(bytes: number): boolean {
    if (bytes > this.bytes) return false;
    this.left -= bytes;
    this.whole?.take(bytes);
    return true;
  }

  /** A part of the budget. Use of the part also counts for the whole. */
  part(share: number): ReadBudget {
    return new ReadBudget(this.bytes * share, this);
  }
}
