// Where a benchmark keeps its data.
import { chmod, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder that Postgres may enter, which does not run as root: otherwise it would keep its data elsewhere, and they would stay. */
export async function temporaryFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'baton-bench-'));
  await chmod(folder, 0o711);
  return folder;
}
