import type { ProtocolError } from '@baton/a2a';
import { Environment } from '@baton/config';
import { Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { BodyLease } from './body-lease.js';
import { HolderBytes } from './holder-bytes.js';

/** Part of the memory that one holder may have. */
const SHARE = 0.1;
/** A body that is not complete after this time makes room for others, the slowest first. */
const SLOW_MS = 10_000;

/**
 * The memory of this process for bodies that are not complete yet, over HTTP and gRPC: `BODY_TOTAL_BYTES`. One holder
 * has a tenth of it, or one body of the maximum size if that is more. A holder is a tenant, an address of guests, or the
 * operators. If there is no room, the slowest body under way ends; without a slow one, the new bytes are refused.
 */
@Injectable()
export class BodyMemoryPool {
  private readonly total: number;
  private readonly maxOfHolder: number;
  private readonly taken = new HolderBytes();
  private readonly leases = new Set<BodyLease>();

  constructor(
    { bodyTotalBytes, bodyLimitBytes }: Environment,
    private readonly metrics: Metrics,
  ) {
    this.total = Math.max(bodyTotalBytes, bodyLimitBytes);
    this.maxOfHolder = Math.max(this.total * SHARE, bodyLimitBytes);
  }

  /**
   * Memory for one body.
   * @param onRefused called at most once, when there is no room for more of this body. Its bytes are free again then
   */
  lease(holder: string, onRefused: (refusal: ProtocolError) => void): BodyLease {
    const lease = new BodyLease(this, holder, onRefused);
    this.leases.add(lease);
    return lease;
  }

  /** Bytes that all bodies under way take. */
  get takenBytes(): number {
    return this.taken.total;
  }

  /** For BodyLease alone. */
  take(lease: BodyLease, bytes: number): void {
    const { holder } = lease;
    const ofHolder = (): number => this.taken.bytesOf(holder) + bytes;
    while (ofHolder() > this.maxOfHolder || this.taken.total + bytes > this.total) {
      const rivals =
        ofHolder() > this.maxOfHolder
          ? [...this.leases].filter((each) => each.holder === holder)
          : this.leases;
      const victim = slowest(rivals) ?? lease;
      this.metrics.limitExceeded.inc({ limit: 'bodyMemory' });
      victim.refuse();
      if (victim === lease) return;
    }
    this.taken.add(holder, bytes);
    lease.bytes += bytes;
  }

  /** For BodyLease alone. */
  give(lease: BodyLease): void {
    if (!this.leases.delete(lease)) return;
    this.taken.add(lease.holder, -lease.bytes);
  }
}

/** The slowest body, in bytes a second, of those that have held memory for `SLOW_MS`. */
function slowest(leases: Iterable<BodyLease>): BodyLease | undefined {
  const now = performance.now();
  const rate = ({ bytes, beganAt }: BodyLease): number => bytes / (now - beganAt);
  const slow = [...leases].filter(({ bytes, beganAt }) => bytes > 0 && now - beganAt > SLOW_MS);
  return slow.toSorted((a, b) => rate(a) - rate(b))[0];
}
