import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const FIXTURE = join(__dirname, 'clock.fixture.cjs');

/** The clock of the machine that the processes with `env` run on. */
export class MachineClock {
  private readonly file = join(mkdtempSync(join(tmpdir(), 'baton-clock-')), 'offset');

  /** @param offsetMs of this clock to the true time */
  constructor(offsetMs = 0) {
    this.set(offsetMs);
  }

  /** From now on it is off by so much. Processes notice it within a tenth of a second. */
  set(offsetMs: number): void {
    writeFileSync(this.file, String(offsetMs));
  }

  /** Environment of a process on this machine. */
  get env(): Record<string, string> {
    return { NODE_OPTIONS: `--require ${FIXTURE}`, CLOCK_OFFSET_FILE: this.file };
  }
}
