const LINE_EVERY_MS = 2_000;

/** Lines about one step of a migration. */
export class StepLines {
  private lastAt = -LINE_EVERY_MS;

  constructor(
    private readonly prefix: string,
    private readonly report: (line: string) => void,
  ) {}

  say(text: string): void {
    this.lastAt = performance.now();
    this.report(`  ${this.prefix}: ${text}`);
  }

  /** The same, but drops the line if another one was printed a moment ago. */
  sometimes(text: string): void {
    if (performance.now() - this.lastAt >= LINE_EVERY_MS) this.say(text);
  }
}
