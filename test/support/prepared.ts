import { spawnSync } from 'node:child_process';

/** The exit code of `run --prepare` if something is missing on this machine. Its output names it. */
const LEFT_OUT = 3;

/**
 * Prepares a program in another language.
 * @param run path of its script
 * @returns what is missing on this machine; undefined: nothing
 */
export function whatIsMissing(run: string): string | undefined {
  const { status, stdout } = spawnSync('bash', [run, '--prepare'], { encoding: 'utf8' });
  return status === LEFT_OUT ? stdout.trim() : undefined;
}

/** As `describe`, for tests that need a program: if something is missing for it, they are skipped, and the title names it. */
export function describePrepared(run: string, title: string, tests: () => void): void {
  const missing = whatIsMissing(run);
  if (missing === undefined) describe(title, tests);
  else describe.skip(`${title} (${missing})`, tests);
}
