import { join } from 'node:path';
import { landlockVersion, type SandboxFiles } from './landlock.js';
import { loadLibc } from './libc.js';

const MAIN = join(__dirname, 'sandbox-main.js');

/** What the program `sandbox-main` gets as its first argument, as JSON. */
export interface SandboxOptions extends SandboxFiles {
  /** Number of file descriptors that the command inherits, from 0 on. */
  descriptors: number;
}

/** Why this machine has no sandbox. Undefined if it has one. */
export function sandboxProblem(): string | undefined {
  if (process.platform !== 'linux') return 'only Linux has one';
  const libc = loadLibc();
  if (!libc) return 'the optional package koffi is not installed';
  if (landlockVersion(libc) > 0) return undefined;
  return 'this kernel does not offer Landlock (it needs Linux 5.13 or later, and landlock in the list lsm= of the kernel)';
}

/**
 * The command line that runs another one in a sandbox. The process keeps its id, environment and inherited file descriptors.
 *
 * - It uses only the given files.
 * - It cannot read memory, environment and open files of processes outside of the sandbox. It cannot trace them. From Linux
 *   6.12 on it cannot send them signals.
 * - It has no capabilities of root, and gets none from programs.
 *
 * All this holds for its children, too.
 */
export function sandboxed(
  options: SandboxOptions,
  command: string,
  args: readonly string[],
): { command: string; args: string[] } {
  return { command: process.execPath, args: [MAIN, JSON.stringify(options), command, ...args] };
}
