import { type Manifest, readArchive } from './archive.js';
import { ArchiveCheck } from './archive-check.js';

/**
 * Reads a backup to its end and compares everything with its checksums.
 * @returns its manifest
 * @throws BackupError that names the incomplete table
 */
export async function verifyBackup(input: AsyncIterable<Uint8Array>): Promise<Manifest> {
  const check = new ArchiveCheck();
  for await (const part of readArchive(input)) check.take(part);
  check.finish();
  return check.manifest;
}
