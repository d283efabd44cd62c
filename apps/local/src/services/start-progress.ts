/** CPU time that counts as progress. A process that only waits takes less, for instance for Postgres. */
const PROGRESS_CPU_MS = 500;

/** Tells whether a starting process still makes progress. A loaded machine may take minutes instead of seconds. */
export class StartProgress {
  private since: number;
  private cpuMs = 0;

  /**
   * @param patienceMs how long it may use almost no CPU time
   * @param readCpuMs its CPU time so far
   */
  constructor(
    private readonly patienceMs: number,
    private readonly readCpuMs: () => number | undefined,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.since = now();
  }

  /** Whether it has made no progress for too long. */
  hasStalled(): boolean {
    const cpuMs = this.readCpuMs() ?? 0;
    if (cpuMs - this.cpuMs >= PROGRESS_CPU_MS) {
      this.cpuMs = cpuMs;
      this.since = this.now();
    }
    return this.now() - this.since > this.patienceMs;
  }
}
