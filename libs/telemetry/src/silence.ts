/**
 * How long another thread or process has shown no heartbeat, counted in steps of the watcher. A step that takes too
 * long counts as one normal step: then the watcher was stopped too, because the machine slept, the process was
 * suspended or the CPU was busy.
 */
export class Silence {
  private silentMs = 0;
  private lastSign: number | undefined;
  private lastStepAt: number;

  /**
   * @param stepMs how often `step` is called, in milliseconds
   * @param now milliseconds of a clock that never jumps
   */
  constructor(
    private readonly stepMs: number,
    private readonly now: () => number = () => performance.now(),
  ) {
    this.lastStepAt = now();
  }

  /**
   * @param sign a value that changes with each heartbeat
   * @returns how long it has not changed, in milliseconds
   */
  step(sign: number): number {
    const at = this.now();
    const stepMs = Math.min(at - this.lastStepAt, this.stepMs * 1.5);
    this.lastStepAt = at;
    this.silentMs = sign === this.lastSign ? this.silentMs + stepMs : 0;
    this.lastSign = sign;
    return this.silentMs;
  }
}
