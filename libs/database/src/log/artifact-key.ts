import { createHash } from 'node:crypto';

/**
 * The number of an artifact in its task's log: 63 bits of the SHA-256 of its id, never 0. So a writer does not need to
 * read the log.
 */
export function artifactKey(artifactId: string): string {
  const hash = createHash('sha256').update(artifactId).digest();
  const key = hash.readBigUInt64BE() & 0x7fff_ffff_ffff_ffffn;
  return (key || 1n).toString();
}
