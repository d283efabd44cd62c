import type { StreamCountStore } from '@baton/database';

interface Claim {
  most: number;
  settle: (granted: boolean) => void;
  fail: (error: unknown) => void;
}

/** Told by the streams of a tenant. */
interface Listener {
  /** None is open, and none is noted any more. */
  over(): void;
  /** The row could not be written; the heartbeat tries again. */
  failed(error: unknown): void;
}

/**
 * The streams of one tenant in one process. What is noted in the database is always written whole and by one
 * statement at a time, so that it can never drift from what is open; claims that come meanwhile go together.
 */
export class TenantStreams {
  private open = 0;
  /** What the row says; 0 is no row. */
  private noted = 0;
  /** Whether there is a row to keep: only where the tenant has, or had, a limit. */
  private listed = false;
  private claims: Claim[] = [];
  private writing = false;

  constructor(
    private readonly tenantId: string,
    private readonly processId: string,
    private readonly counts: StreamCountStore,
    private readonly listener: Listener,
  ) {}

  get isListed(): boolean {
    return this.listed;
  }

  /** One more, where there is no limit. */
  add(): void {
    this.open += 1;
    this.write();
  }

  /** One more if all processes together stay within `most`; whether it was granted. */
  claim(most: number): Promise<boolean> {
    this.listed = true;
    return new Promise((settle, fail) => {
      this.claims.push({ most, settle, fail });
      this.write();
    });
  }

  /** One of them has ended. */
  remove(): void {
    this.open -= 1;
    this.write();
  }

  /** From now on the streams are noted in the database. */
  list(): void {
    this.listed = true;
    this.write();
  }

  /** @param noted what the row says; another number is put right */
  mend(noted: number): void {
    if (this.writing) return;
    this.noted = noted;
    this.write();
  }

  private write(): void {
    if (!this.writing) void this.writeAll();
  }

  private async writeAll(): Promise<void> {
    this.writing = true;
    while (this.claims.length > 0 || (this.listed && this.noted !== this.open)) {
      if (!(await this.writeOnce())) break;
    }
    this.writing = false;
    if (this.open === 0 && this.noted === 0 && this.claims.length === 0) {
      this.listed = false;
      this.listener.over();
    }
  }

  /** @returns whether it is worth going on */
  private async writeOnce(): Promise<boolean> {
    const claims = this.claims;
    const held = this.open;
    this.claims = [];
    try {
      const granted = await this.ask(held, claims);
      this.open += granted;
      this.noted = held + granted;
      claims.forEach(({ settle }, i) => settle(i < granted));
      return true;
    } catch (error) {
      for (const { fail } of claims) fail(error);
      if (claims.length === 0) this.listener.failed(error);
      return claims.length > 0;
    }
  }

  private async ask(held: number, claims: readonly Claim[]): Promise<number> {
    const { tenantId, processId } = this;
    const last = claims.at(-1);
    if (last) {
      return this.counts.claim({ tenantId, processId, held, wanted: claims.length, most: last.most });
    }
    await this.counts.report(tenantId, processId, held);
    return 0;
  }
}
