import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

/**
 * Stops everything that this process has started, and what that has started, for `ms`: Baton, its agents, Postgres and Redis stand
 * still at once, as on a virtual machine that is paused. The callers of this process do not.
 */
export async function pauseMachine(ms: number): Promise<number> {
  const stopped = new Set<number>();
  try {
    // Again until it finds no more: a process may start another before it is stopped.
    for (;;) {
      const found = (await descendants()).filter((pid) => !stopped.has(pid));
      if (found.length === 0) break;
      for (const pid of found) signal(pid, 'SIGSTOP');
      found.forEach((pid) => stopped.add(pid));
    }
    await delay(ms);
  } finally {
    for (const pid of stopped) signal(pid, 'SIGCONT');
  }
  return stopped.size;
}

/** All processes below this one. */
async function descendants(): Promise<number[]> {
  const listing = promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid=']);
  const { pid: lister } = listing.child;
  const children = new Map<number, number[]>();
  for (const line of (await listing).stdout.trim().split('\n')) {
    const [pid, parent] = line.trim().split(/\s+/).map(Number) as [number, number];
    if (pid !== lister) children.set(parent, [...(children.get(parent) ?? []), pid]);
  }
  const below = (pid: number): number[] =>
    (children.get(pid) ?? []).flatMap((each) => [each, ...below(each)]);
  return below(process.pid);
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended.
  }
}
