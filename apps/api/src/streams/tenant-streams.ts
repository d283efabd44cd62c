import { StreamCountStore } from '@baton/database';

interface Claim {
  max: number;
  resolve: (granted: boolean) => void;
  reject: (error: unknown) => void;
}

interface Listener {
  /** No stream is open, and the row is empty. */
  over(): void;
  /** The row could not be written; the heartbeat tries again. */
  failed(error: unknown): void;
}

/**
 * The streams of one tenant in one process. The row is always written whole and by one statement at a time, so it
 * cannot differ from the open streams for long. Claims that arrive meanwhile are written together.
 */
export class TenantStreams {
  private open = 0;
  /** The value of the row; 0 is no row. */
  private noted = 0;
  /** Whether a row is needed: only if the tenant has, or had, a limit. */
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

  /** Counts one more stream without a limit. */
  add(): void {
    this.open += 1;
    this.write();
  }

  /** Counts one more stream if all processes together stay within `max`. Resolves with whether it was granted. */
  claim(max: number): Promise<boolean> {
    this.listed = true;
    return new Promise((resolve, reject) => {
      this.claims.push({ max, resolve, reject });
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

  /** @param noted the number in the row; a wrong number is corrected */
  reconcile(noted: number): void {
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

  /** @returns whether to continue */
  private async writeOnce(): Promise<boolean> {
    const held = this.open;
    // Guests may open fewer. A batch has one maximum.
    const max = this.claims[0]?.max;
    const claims = this.claims.filter((claim) => claim.max === max);
    this.claims = this.claims.filter((claim) => claim.max !== max);
    try {
      const granted = await this.ask(held, claims);
      this.open += granted;
      this.noted = held + granted;
      claims.forEach(({ resolve }, i) => resolve(i < granted));
      return true;
    } catch (error) {
      for (const { reject } of claims) reject(error);
      if (claims.length === 0) this.listener.failed(error);
      return claims.length > 0;
    }
  }

  private async ask(held: number, claims: readonly Claim[]): Promise<number> {
    const { tenantId, processId } = this;
    const last = claims.at(-1);
    if (last) {
      return this.counts.claim({ tenantId, processId, held, wanted: claims.length, max: last.max });
    }
    await this.counts.report(tenantId, processId, held);
    return 0;
  }
}
