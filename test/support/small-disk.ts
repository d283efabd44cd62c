import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A file system of its own (tmpfs) that a test fills. Only root may mount one, and not in every container. */
export class SmallDisk {
  private readonly filler: string;

  private constructor(readonly folder: string) {
    this.filler = join(folder, 'filler');
  }

  /**
   * @param size as mount takes it, such as `160m`
   * @returns the disk, or the reason why this machine has none
   */
  static mount(size: string): SmallDisk | string {
    const folder = mkdtempSync(join(tmpdir(), 'baton-disk-'));
    chmodSync(folder, 0o711);
    const { status, stderr, error } = spawnSync(
      'mount',
      ['-t', 'tmpfs', '-o', `size=${size},mode=0711`, 'tmpfs', folder],
      { encoding: 'utf8' },
    );
    if (status === 0) return new SmallDisk(folder);
    rmSync(folder, { recursive: true });
    return error?.message ?? stderr.trim();
  }

  /** Takes all the room that is left. */
  fill(): void {
    const { bavail, bsize } = statfsSync(this.folder);
    try {
      writeFileSync(this.filler, Buffer.alloc(bavail * bsize));
    } catch (error) {
      // Another program has written meanwhile: now the disk is full.
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    }
  }

  /** Gives the room back. */
  free(): void {
    rmSync(this.filler, { force: true });
  }

  unmount(): void {
    spawnSync('umount', ['-l', this.folder]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}
