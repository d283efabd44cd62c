import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(__dirname, '../..');
const run = promisify(execFile);

/** The last release: its commit, and its last migration. CONTRIBUTING.md (A release) says when to change them. */
export const RELEASED = {
  version: '0.2.0',
  commit: 'bc3d6bbc87418e4c90892a0a29eef69bba85045e',
  lastMigration: '20261124092000_later_runs',
} as const;

/**
 * The last release, built from git below `dist`, once for each commit. It uses the packages that are
 * installed here, unless it needs others.
 * @returns the folder of its build; nothing where git or the commit is missing, as in a shallow clone
 */
export async function releasedBuild(): Promise<string | undefined> {
  const { commit } = RELEASED;
  const folder = join(ROOT, 'dist/released', commit);
  if (existsSync(folder)) return join(folder, 'dist');
  const known = await run('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: ROOT }).then(
    () => true,
    () => false,
  );
  if (!known) return undefined;
  const draft = `${folder}.${process.pid}`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  try {
    const archive = join(draft, 'source.tar');
    await run('git', ['archive', '--output', archive, commit], { cwd: ROOT });
    await run('tar', ['-xf', archive, '-C', draft]);
    rmSync(archive);
    // Node.js finds the packages for development in the folder above, which is this clone.
    if (!hasPackagesOf(draft))
      await run('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit'], { cwd: draft });
    await run(process.execPath, ['prisma/generate.mjs'], { cwd: draft });
    // Its types were checked when it was made: it is compiled in the way of this release, which leaves them out. And it is
    // bundled as this one: then a process of it needs a third of the CPU to start.
    for (const name of ['nest-cli.json', '.swcrc', 'bundle.mjs'])
      copyFileSync(join(ROOT, name), join(draft, name));
    await run(process.execPath, [require.resolve('@nestjs/cli/bin/nest.js'), 'build'], { cwd: draft });
    await run(process.execPath, ['bundle.mjs', 'apps/api', 'apps/worker'], { cwd: draft });
    renameSync(draft, folder);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    throw error;
  }
  return join(folder, 'dist');
}

/** Whether all its dependencies are installed here in the same versions. */
function hasPackagesOf(folder: string): boolean {
  const read = (...path: string[]): { version?: string; dependencies?: Record<string, string> } =>
    JSON.parse(readFileSync(join(...path, 'package.json'), 'utf8')) as never;
  return Object.entries(read(folder).dependencies ?? {}).every(([name, version]) => {
    const installed = join(ROOT, 'node_modules', name);
    return existsSync(installed) && read(installed).version === version;
  });
}
