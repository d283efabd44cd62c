import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Stops the agents `pacer` and `busy` behind their first chunk until the test lets them continue. A stream of a fixed length may end
 * before the test has done what must happen during it.
 */
export class Hold {
  private readonly folder = mkdtempSync(join(tmpdir(), 'baton-hold-'));
  private readonly file = join(this.folder, 'hold');

  /** Settings of the workers. */
  readonly env = { BATON_AGENTS_DIR: join(__dirname, '../agents'), HOLD_FILE: this.file };

  /** From now on an agent sends one chunk and waits. */
  hold(): void {
    writeFileSync(this.file, '');
  }

  release(): void {
    rmSync(this.file, { force: true });
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The message that makes `pacer` send a text several times, each as one chunk. */
export const times = (count: number, text: string): string => `${count} times ${text}`;
