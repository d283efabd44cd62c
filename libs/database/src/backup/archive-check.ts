import { type BackupPart, type Checksums, isSame, type Manifest } from './archive.js';
import { BackupError } from './backup-error.js';
import { RowDigest } from './row-digest.js';

/** Checks the parts of a backup as they pass. Throws BackupError if one is missing, or does not match the checksums. */
export class ArchiveCheck {
  private found: Manifest | undefined;
  private checksums: Checksums | undefined;
  private readonly digests = new Map<string, RowDigest>();

  take(part: BackupPart): void {
    if (this.checksums) throw new BackupError('The backup has data after its end.');
    if (part.kind === 'manifest') this.found = part.manifest;
    else if (part.kind === 'checksums') this.checksums = part.checksums;
    else this.digestOf(part.table).update(part.data);
  }

  /** Call it after the last part. @returns the digests that the restored tables must have */
  finish(): Checksums {
    const { tables } = this.manifest;
    if (!this.checksums) throw new BackupError('The backup is incomplete: its end is missing.');
    for (const { name, rows } of tables) {
      const digest = this.digestOf(name).result;
      if (digest.rows !== rows) {
        throw new BackupError(
          `The backup is incomplete: ${name} has ${digest.rows} rows instead of ${rows}.`,
        );
      }
      if (!isSame(digest, this.checksums[name])) {
        throw new BackupError(`The backup was changed: the rows of ${name} do not match their checksum.`);
      }
    }
    return this.checksums;
  }

  get manifest(): Manifest {
    if (!this.found)
      throw new BackupError('This is not a backup of Baton: it does not begin with a manifest.');
    return this.found;
  }

  private digestOf(table: string): RowDigest {
    if (!this.manifest.tables.some(({ name }) => name === table)) {
      throw new BackupError(`The backup has rows of a table ${table}, which its manifest does not name.`);
    }
    const digest = this.digests.get(table) ?? new RowDigest();
    this.digests.set(table, digest);
    return digest;
  }
}
