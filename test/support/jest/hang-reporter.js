const { readFileSync } = require('node:fs');
const { relative } = require('node:path');

const MINUTE_MS = 60_000;

/**
 * Ends a run in which a test file hangs, and names the file. A test that waits for something is ended by its own time limit. That
 * does not help against an endless loop, nor against a file that waits while it is loaded.
 */
module.exports = class {
  /** @param options `minutes`: how long a file may be without a test that ends; longer than the limit of any test */
  constructor(_config, { minutes }) {
    this.minutes = minutes;
    /** When each file that runs has last ended a test, by its path. */
    this.lastEnds = new Map();
  }

  onRunStart() {
    this.timer = setInterval(() => this.look(), Math.min(MINUTE_MS, this.minutes * MINUTE_MS) / 6);
    this.timer.unref();
  }

  onTestFileStart({ path }) {
    this.lastEnds.set(path, performance.now());
  }

  onTestCaseResult({ path }) {
    this.lastEnds.set(path, performance.now());
  }

  onTestFileResult({ path }) {
    this.lastEnds.delete(path);
  }

  onRunComplete() {
    clearInterval(this.timer);
  }

  look() {
    const oldest = performance.now() - this.minutes * MINUTE_MS;
    const hanging = [...this.lastEnds].filter(([, lastEnd]) => lastEnd < oldest);
    if (hanging.length === 0) return;
    for (const [path] of hanging) {
      process.stderr.write(
        `FAIL ${relative(process.cwd(), path)} hangs: none of its tests has ended for ${this.minutes} minutes. The run ends.\n`,
      );
    }
    // A worker in an endless loop does not notice that its parent has gone.
    for (const pid of workerPids()) process.kill(pid, 'SIGKILL');
    process.exit(1);
  }
};

/** The workers of Jest, as Linux lists them. Postgres and Redis are among them: the run is over, so they may end too. */
function workerPids() {
  try {
    return readFileSync(`/proc/self/task/${process.pid}/children`, 'utf8').trim().split(' ').map(Number);
  } catch {
    return [];
  }
}
