import type { AppendBatch, AppendResult, ClaimedRun, PoisonedRun, RunKey, RunToEnqueue } from './records.js';

/** Runs: claim, append, heartbeat, sweep. */
export declare class RunStore {
  /** Compare-and-set: queued, or running with an expired lease → running, attempt + 1. Undefined: somebody else has it, or it is over. */
  claim(tenantId: string, runId: string, workerId: string, leaseMs: number): Promise<ClaimedRun | undefined>;
  /** Append a batch; refused if the attempt is not current or the task is terminal. */
  append(key: RunKey, batch: AppendBatch): Promise<AppendResult>;
  /** Extend the leases; returns the run ids that are still held. The others must stop. */
  heartbeat(keys: readonly RunKey[], leaseMs: number): Promise<Set<string>>;
  /** Give a run back to the queue (shutdown); it does not count as an attempt that died. */
  handBack(key: RunKey): Promise<boolean>;
  /** Expired leases: back to queued if attempts remain. */
  reclaimExpired(maxAttempts: number, limit: number): Promise<RunToEnqueue[]>;
  /** Expired leases whose attempts are used up: run and task failed, with the reason. */
  failPoisoned(maxAttempts: number, limit: number): Promise<PoisonedRun[]>;
  /** Queued runs not enqueued in the last `olderThanMs`; marks them as enqueued now. */
  takeOrphans(olderThanMs: number, limit: number): Promise<RunToEnqueue[]>;
  /** Number of runs by state, for metrics. */
  countByState(): Promise<Record<string, number>>;
}
