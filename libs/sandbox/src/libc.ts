import { createRequire } from 'node:module';

/** Functions of the C library that Node.js does not have. Each returns -1 if it fails. */
export interface Libc {
  prctl: (option: number, second: number, third: number, fourth: number, fifth: number) => number;
  fcntl: (fd: number, command: number, value: number) => number;
  execve: (path: string, argv: (string | null)[], env: (string | null)[]) => number;
  /** `landlock_create_ruleset` with attributes, and without: then it returns the version. */
  createRuleset: (call: number, attributes: Buffer | null, size: number, flags: number) => number;
  addRule: (call: number, ruleset: number, type: number, attributes: Buffer, flags: number) => number;
  restrictSelf: (call: number, ruleset: number, flags: number) => number;
  /** The number of the last error. */
  errno: () => number;
}

/** What this file uses of the optional package `koffi`. */
interface Koffi {
  load: (library: null) => { func: (prototype: string) => unknown };
  errno: () => number;
}

let known: Libc | undefined;

/** The C library of this process. Undefined on systems other than Linux, and where the package `koffi` is not installed. */
export function loadLibc(): Libc | undefined {
  if (process.platform !== 'linux') return undefined;
  known ??= bind();
  return known;
}

function bind(): Libc | undefined {
  let koffi: Koffi;
  try {
    // Optional: it has binaries for most platforms, not for all.
    koffi = createRequire(__filename)('koffi') as Koffi;
  } catch {
    return undefined;
  }
  const library = koffi.load(null);
  const named = (prototype: string): unknown => library.func(prototype);
  return {
    prctl: named(
      'int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long)',
    ) as Libc['prctl'],
    fcntl: named('int fcntl(int, int, int)') as Libc['fcntl'],
    execve: named('int execve(const char *, const char **, const char **)') as Libc['execve'],
    createRuleset: named('int syscall(long, void *, size_t, unsigned int)') as Libc['createRuleset'],
    addRule: named('int syscall(long, int, int, void *, unsigned int)') as Libc['addRule'],
    restrictSelf: named('int syscall(long, int, unsigned int)') as Libc['restrictSelf'],
    errno: () => koffi.errno(),
  };
}
