/** Often enough to see progress, without a log of thousands of lines. */
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

  /** A line about progress. It is dropped if another line was printed in the last two seconds. */
  sayProgress(text: string): void {
    if (performance.now() - this.lastAt >= LINE_EVERY_MS) this.say(text);
  }
}
