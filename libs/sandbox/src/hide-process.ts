import { loadLibc } from './libc.js';

/** Number of prctl(2) of Linux. */
const PR_SET_DUMPABLE = 4;

/**
 * Hides this process from other processes of its user: they cannot read its environment, memory and open files in `/proc`,
 * cannot trace it, and it leaves no core dump (PR_SET_DUMPABLE of prctl(2)). SIGUSR1 no longer opens the debugger of Node.js.
 * Root can still do all of this, except in a sandbox. Call it first: until then the process is visible.
 *
 * @returns false on systems other than Linux, and where the package `koffi` is not installed
 */
export function hideProcess(): boolean {
  // A listener replaces the one that opens a port for all users of this machine.
  process.on('SIGUSR1', () => undefined);
  return loadLibc()?.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) === 0;
}
