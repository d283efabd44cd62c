/**
 * Builds the console into `dist/console`, if anything that goes into it has changed since the last build.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const ROOT = join(HERE, '../..');
const OUT = join(ROOT, 'dist/console');
const STAMP = join(ROOT, 'dist/console.stamp');
/** Smaller files are not worth a second copy. */
const MIN_PACKED_BYTES = 1_000;

async function filesOf(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

const read = (path) => readFile(path).catch(() => undefined);

const hash = createHash('sha256');
const sources = [...(await filesOf(HERE)), ...(await filesOf(join(ROOT, 'libs/contract/src')))];
for (const file of [...sources, join(ROOT, 'package-lock.json')]) {
  hash.update(file.slice(ROOT.length)).update(await readFile(file));
}
const stamp = hash.digest('hex');
const isBuilt = String(await read(STAMP)) === stamp && (await read(join(OUT, 'index.html'))) !== undefined;

if (!isBuilt) {
  const { build } = await import('vite');
  await build({ configFile: join(HERE, 'vite.config.mts'), logLevel: 'warn' });
  for (const file of await filesOf(join(OUT, 'assets'))) {
    const bytes = await readFile(file);
    if (/\.(js|css|svg)$/.test(file) && bytes.length >= MIN_PACKED_BYTES) {
      // Browsers take the second one over TLS alone. It is a sixth smaller.
      await writeFile(`${file}.gz`, gzipSync(bytes, { level: 9 }));
      await writeFile(`${file}.br`, brotliCompressSync(bytes));
    }
  }
  await writeFile(STAMP, stamp);
}
