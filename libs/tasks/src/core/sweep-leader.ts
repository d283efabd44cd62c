import { RunStore, type SweepFindings } from '@baton/database';
import { Injectable } from '@nestjs/common';

/** Kinds of work of a sweep. */
type Finding = Exclude<keyof SweepFindings, 'at' | 'nextMs'>;

/**
 * The worker that sweeps for all: the oldest one. One statement finds the work of all sweeps, and each sweep that has some is
 * notified. Two leaders are harmless: each row is claimed by one.
 */
@Injectable()
export class SweepLeader {
  private readonly listeners: { finding: Finding; listener: () => void }[] = [];
  private isLeading = false;

  constructor(private readonly runs: RunStore) {}

  /** Whether this worker sweeps. */
  get isLeader(): boolean {
    return this.isLeading;
  }

  /** Makes this worker the leader, or ends that. */
  assign(isLeading: boolean): void {
    this.isLeading = isLeading;
  }

  /** `listener` is called after each sweep that has found that. */
  on(finding: Finding, listener: () => void): void {
    this.listeners.push({ finding, listener });
  }

  /** One sweep. Rejects when Postgres is away. The parameters are those of `findWork`. */
  async sweep(staleQueuedRunMs: number, orphanLeaseMs: number): Promise<SweepFindings> {
    const found = await this.runs.findWork(staleQueuedRunMs, orphanLeaseMs);
    for (const { finding, listener } of this.listeners) if (found[finding]) listener();
    return found;
  }
}
