import { restrictThread } from './landlock.js';
import { type Libc, loadLibc } from './libc.js';
import type { SandboxOptions } from './sandbox.js';

// Enters a sandbox and becomes another program: `sandbox-main.js <SandboxOptions as JSON> <command> <arguments>`. Landlock
// limits a thread, not a process. The program that this thread becomes has no other threads.

/** Numbers of prctl(2) and fcntl(2) of Linux. */
const PR_SET_NO_NEW_PRIVS = 38;
const PR_CAPBSET_DROP = 24;
const PR_CAP_AMBIENT = 47;
const PR_CAP_AMBIENT_CLEAR_ALL = 4;
const F_SETFD = 2;

function main(): void {
  const [json = '', command = '', ...args] = process.argv.slice(2);
  // oxlint-disable-next-line no-restricted-properties -- the worker wrote it
  const { descriptors, ...files } = JSON.parse(json) as SandboxOptions;
  const libc = loadLibc();
  if (!libc) throw new Error('the package koffi is not installed');
  dropPrivileges(libc);
  restrictThread(libc, files);
  // Node.js closes all descriptors that it inherits when it becomes another program.
  for (let fd = 0; fd < descriptors; fd++) libc.fcntl(fd, F_SETFD, 0);
  const env = Object.entries(process.env).map(([name, value]) => `${name}=${value ?? ''}`);
  libc.execve(command, [command, ...args, null], [...env, null]);
  throw new Error(`${command} could not be started (error ${libc.errno()})`);
}

/** Without capabilities root has only its files, and those only as far as the sandbox goes. */
function dropPrivileges(libc: Libc): void {
  if (libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) !== 0) {
    throw new Error(`PR_SET_NO_NEW_PRIVS failed with error ${libc.errno()}`);
  }
  libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  // Ends at the first number that is no capability. Other users than root have none to drop.
  for (let capability = 0; libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) === 0;) capability++;
}

try {
  main();
} catch (error) {
  process.stderr.write(`The sandbox failed: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
