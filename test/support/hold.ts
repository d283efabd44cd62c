import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/**
 * Stops the agents `pacer` and `busy` behind their first chunk until the test lets them continue. A stream of a fixed length may end
 * before the test has done what must happen during it.
 */
export class Hold {
  /** @param file that of the workers; default: one of its own, see `env` */
  constructor(private readonly file = join(mkdtempSync(join(tmpdir(), 'baton-hold-')), 'hold')) {}

  /** Settings of the workers. */
  get env(): { BATON_AGENTS_DIR: string; HOLD_FILE: string } {
    return { BATON_AGENTS_DIR: join(__dirname, '../agents'), HOLD_FILE: this.file };
  }

  /** From now on an agent sends one chunk and waits. */
  hold(): void {
    writeFileSync(this.file, '');
  }

  release(): void {
    rmSync(this.file, { force: true });
  }

  remove(): void {
    rmSync(dirname(this.file), { recursive: true, force: true });
  }
}

/** The message that makes `pacer` send a text several times, each as one chunk. */
export const times = (count: number, text: string): string => `${count} times ${text}`;
