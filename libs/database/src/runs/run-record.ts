import type { ParkedRun } from '../dispatch/parked-run.js';

/** A run of a task, for people. */
export interface RunRecord {
  runId: string;
  state: 'queued' | 'running' | 'suspended' | 'succeeded' | 'failed' | 'canceled';
  /** How often a worker has claimed it. */
  attempt: number;
  /** Attempts that ended with their worker. */
  crashes: number;
  /** The worker that has it, or had it last. Null: none yet. */
  workerId: string | null;
  /** Sequence of the event with which its turn was accepted. */
  startSequence: number;
  createdAt: Date;
  /** It waits until then. */
  notBefore: Date | null;
  finishedAt: Date | null;
  /** It waits for other code. Null: it does not. */
  parked: ParkedRun | null;
}
