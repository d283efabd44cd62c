import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OPTIMIZE_LATER } from './baton-process.js';

/** The program of `npm start`. */
export const LOCAL_MAIN = join(__dirname, '../../dist/apps/local/src/main.js');
// For a run that hangs. The end of a run is noticed at once.
const TIMEOUT_MS = 4 * 60_000;

/** A folder for BATON_HOME that every user may pass through, and a function that removes it. */
export function temporaryHome(): { path: string; remove(): void } {
  const folder = mkdtempSync(join(tmpdir(), `baton-test-${process.pid}-`));
  chmodSync(folder, 0o711);
  return { path: join(folder, 'home'), remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Below the ports that the system gives out. */
const FIRST_PORT = 20_000;
let started = 0;

/** Ports for one `npm start`. It finds free ones itself, but starts its API again when another takes them first: that costs time. */
function ownPorts() {
  const port = FIRST_PORT + (process.pid % 1_000) * 10 + (started++ % 5) * 2;
  return { MANAGEMENT_PORT: String(port), GRPC_PORT: String(port + 1) };
}

/** One `npm start` of a test. */
export class LocalRun {
  private text = '';
  private readonly child: ChildProcess;
  private readonly listeners = new Set<() => void>();
  /** The exit code; null if it was killed. */
  readonly exited: Promise<number | null>;

  /**
   * @param environment on top of ours, without the services the tests themselves use; undefined takes a name out
   * @param folder in which it is started, whose `.env` it reads
   * @param program with its arguments. Default: that of `npm start`
   * @param command which runs the program. Default: Node.js
   */
  constructor(
    environment: Record<string, string | undefined>,
    folder = process.cwd(),
    program: readonly string[] = [LOCAL_MAIN],
    command = process.execPath,
  ) {
    this.child = spawn(command, program, {
      cwd: folder,
      // Also for the processes that it starts.
      env: {
        ...process.env,
        NODE_OPTIONS: OPTIMIZE_LATER.map((option) => JSON.stringify(option)).join(' '),
        DATABASE_URL: '',
        REDIS_URL: '',
        ...ownPorts(),
        ...environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (chunk: string) => {
        this.text += chunk;
        for (const listener of this.listeners) listener();
      });
    }
    this.exited = new Promise((resolve) => {
      this.child.once('close', (code) => {
        resolve(code);
        for (const listener of this.listeners) listener();
      });
    });
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** All it has printed. */
  get output(): string {
    return this.text;
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name);
  }

  /** Resolves when it has printed this `times` times; rejects if it ends or takes too long. */
  printed(part: string, times = 1): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (error?: Error): void => {
        clearTimeout(timer);
        this.listeners.delete(look);
        if (error) reject(error);
        else resolve();
      };
      const fail = (why: string): void =>
        settle(new Error(`"${part}" was not printed: ${why}\n${this.text}`));
      const timer = setTimeout(() => fail('time is up'), TIMEOUT_MS);
      const look = (): void => {
        if (this.text.split(part).length > times) settle();
        else if (this.child.exitCode !== null || this.child.signalCode !== null) fail('it has ended');
      };
      this.listeners.add(look);
      look();
    });
  }

  /** Resolves when everything is up. */
  ready(): Promise<void> {
    return this.printed('Ctrl-C stops everything');
  }
}

/** `npm start` on a machine without IPv4: in a network namespace of its own, whose only address is ::1. Needs root. */
export function startOnIpv6(environment: Record<string, string | undefined>): LocalRun {
  const onlyIpv6 = 'ip link set lo up && ip address delete 127.0.0.1/8 dev lo && exec "$@"';
  const program = ['--net', 'sh', '-c', onlyIpv6, 'sh', process.execPath, LOCAL_MAIN];
  return new LocalRun(environment, process.cwd(), program, 'unshare');
}

/** The ids of the processes whose parent this is, by the name of their program. */
export function childrenOf(pid: number): { pid: number; command: string }[] {
  const ids = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
  return ids.map((id) => ({ pid: Number(id), command: commandOf(Number(id)) }));
}

function commandOf(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
}

/** Whether a process is there and not merely waiting to be reaped. */
export function isRunning(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}
