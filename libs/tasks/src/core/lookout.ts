import { RunStore, type SweepFindings } from '@baton/database';
import { Injectable } from '@nestjs/common';

/** What a sweep can wait for. */
type Finding = Exclude<keyof SweepFindings, 'at' | 'nextMs'>;

/**
 * Looks for the work of all sweeps with one statement, and tells each sweep that has some. Only one worker looks at a
 * time: the one that has lived longest. Should two believe that they are it, each row still goes to one of them.
 */
@Injectable()
export class Lookout {
  private readonly listeners: { finding: Finding; listener: () => void }[] = [];
  private isOnDuty = false;

  constructor(private readonly runs: RunStore) {}

  /** Whether this worker sweeps. */
  get isOn(): boolean {
    return this.isOnDuty;
  }

  /** From now on this worker sweeps, or leaves it to another. */
  assign(isOnDuty: boolean): void {
    this.isOnDuty = isOnDuty;
  }

  /** `listener` is called after each look that has found that. */
  on(finding: Finding, listener: () => void): void {
    this.listeners.push({ finding, listener });
  }

  /** One look. Rejects when Postgres is away. @param staleQueuedRunMs age at which a run on the queue counts as lost */
  async look(staleQueuedRunMs: number): Promise<SweepFindings> {
    const found = await this.runs.lookForWork(staleQueuedRunMs);
    for (const { finding, listener } of this.listeners) if (found[finding]) listener();
    return found;
  }
}
