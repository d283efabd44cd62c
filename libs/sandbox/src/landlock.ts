import { closeSync, fstatSync, openSync } from 'node:fs';
import type { Libc } from './libc.js';

/** Files and folders that a process may use. A folder includes all that is in it. Paths that do not exist do not count. */
export interface SandboxFiles {
  /** May be read and run. */
  read: readonly string[];
  /** May be read, run, changed, made and removed. */
  write: readonly string[];
}

// The numbers of include/uapi/linux/landlock.h. They are the same on every processor.
const CREATE_RULESET = 444;
const ADD_RULE = 445;
const RESTRICT_SELF = 446;
const VERSION_FLAG = 1;
const PATH_BENEATH = 1;

const EXECUTE = 1 << 0;
const WRITE_FILE = 1 << 1;
const READ_FILE = 1 << 2;
const READ_DIR = 1 << 3;
const TRUNCATE = 1 << 14;
const IOCTL_DEVICE = 1 << 15;
const OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE;
const READ = EXECUTE | READ_FILE | READ_DIR;

/** The rights of each version of Landlock: it refuses others. */
const RIGHTS_SINCE = [
  [1, (1 << 13) - 1],
  [2, (1 << 14) - 1],
  [3, (1 << 15) - 1],
  [5, (1 << 16) - 1],
] as const;

/** Sockets of the abstract namespace, and signals. */
const SCOPES_SINCE_6 = 0b11;

const O_PATH = 0o10000000;
const O_CLOEXEC = 0o2000000;

/** The version of Landlock in this kernel. 0 if it has none, or does not use it. */
export const landlockVersion = ({ createRuleset }: Libc): number =>
  Math.max(0, createRuleset(CREATE_RULESET, null, 0, VERSION_FLAG));

/**
 * Limits this thread, and the program that it becomes, to these files. It can no longer read the memory, the environment or
 * the open files of processes outside of the sandbox, nor trace them. From version 6 (Linux 6.12) on it cannot send them
 * signals either. This cannot be undone. See landlock(7).
 *
 * @throws Error if the kernel refuses
 */
export function restrictThread(libc: Libc, files: SandboxFiles): void {
  const version = landlockVersion(libc);
  const rights = RIGHTS_SINCE.findLast(([since]) => since <= version)?.[1] ?? 0;
  const attributes = Buffer.alloc(24);
  attributes.writeBigUInt64LE(BigInt(rights), 0);
  // 8 to 15: network. Agents call any port.
  if (version >= 6) attributes.writeBigUInt64LE(BigInt(SCOPES_SINCE_6), 16);
  const size = version >= 6 ? 24 : 8;
  const ruleset = succeed(libc, 'create_ruleset', libc.createRuleset(CREATE_RULESET, attributes, size, 0));
  for (const path of files.read) allow(libc, ruleset, path, rights & READ);
  for (const path of files.write) allow(libc, ruleset, path, rights);
  succeed(libc, 'restrict_self', libc.restrictSelf(RESTRICT_SELF, ruleset, 0));
  closeSync(ruleset);
}

function allow(libc: Libc, ruleset: number, path: string, rights: number): void {
  const fd = openPath(path);
  if (fd === undefined) return;
  const rule = Buffer.alloc(12);
  rule.writeBigUInt64LE(BigInt(fstatSync(fd).isDirectory() ? rights : rights & OF_FILES), 0);
  rule.writeInt32LE(fd, 8);
  succeed(libc, `add_rule of ${path}`, libc.addRule(ADD_RULE, ruleset, PATH_BENEATH, rule, 0));
  closeSync(fd);
}

/** A descriptor that names the file and needs no right to read it. Undefined if this user does not find the file. */
function openPath(path: string): number | undefined {
  try {
    return openSync(path, O_PATH | O_CLOEXEC);
  } catch {
    return undefined;
  }
}

function succeed(libc: Libc, what: string, result: number): number {
  if (result < 0) throw new Error(`landlock_${what} failed with error ${libc.errno()}`);
  return result;
}
