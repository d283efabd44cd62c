/**
 * Generates the Prisma client (libs/database/src/generated) without the network. The Prisma CLI would
 * download its schema engine although `generate` does not need it; given an engine that refuses to run, it
 * goes on without one. Anyone who has a real engine names it in PRISMA_SCHEMA_ENGINE_BINARY.
 */
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const cli = createRequire(import.meta.url).resolve('prisma/build/index.js');
const { status } = spawnSync(process.execPath, [cli, 'generate', '--no-hints', ...process.argv.slice(2)], {
  cwd: fileURLToPath(new URL('..', import.meta.url)),
  env: {
    PRISMA_SCHEMA_ENGINE_BINARY: fileURLToPath(new URL('no-engine.cjs', import.meta.url)),
    PRISMA_HIDE_UPDATE_MESSAGE: '1',
    CHECKPOINT_DISABLE: '1',
    ...process.env,
  },
  stdio: 'inherit',
});
process.exit(status ?? 1);
