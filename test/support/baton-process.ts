import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';

const DIST = join(__dirname, '../../dist');
// For a process that hangs: one that ends is told at once.
const START_TIMEOUT_MS = 4 * 60_000;

/** A Baton process of a test: a real one, from the build. */
export interface BatonProcess {
  readonly kind: 'api' | 'worker';
  /** Where an API answers; empty for a worker. */
  readonly url: string;
  /** Where an API answers operators; empty for a worker. */
  readonly managementUrl: string;
  readonly pid: number;
  /** `kill -9`; resolves when the process is gone. */
  kill(): Promise<void>;
  /** Asks it to stop and waits until it has; its exit code. */
  stop(): Promise<number | null>;
  signal(name: NodeJS.Signals): void;
  /** Resolves when it is gone, for whatever reason, with its exit code. */
  readonly exited: Promise<number | null>;
  /** Everything it has logged. */
  log(): string;
}

/**
 * Start an API on a free port or a worker; resolves when it says that it is ready.
 * @param dist the build it is from; default: this one
 */
export async function startProcess(
  kind: BatonProcess['kind'],
  env: Record<string, string>,
  timeoutMs = START_TIMEOUT_MS,
  dist = DIST,
): Promise<BatonProcess> {
  const child = spawn(process.execPath, [join(dist, 'apps', kind, 'src/main.js')], {
    env: { ...process.env, LOG_LEVEL: 'info', HOST: '127.0.0.1', PORT: '0', MANAGEMENT_PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => lines.push(text));
  }
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const { url, managementUrl } = await ready(kind, child, lines, timeoutMs);
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    return exited;
  };
  return {
    kind,
    url,
    managementUrl,
    pid: child.pid ?? 0,
    kill: async () => {
      await end('SIGKILL');
    },
    stop: () => end('SIGTERM'),
    signal: (name) => void child.kill(name),
    exited,
    log: () => lines.join(''),
  };
}

function ready(
  kind: string,
  child: ChildProcess,
  lines: string[],
  timeoutMs: number,
): Promise<{ url: string; managementUrl: string }> {
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => {
      clearTimeout(timer);
      child.kill('SIGKILL');
      reject(new Error(`The ${kind} process ${why}:\n${lines.join('')}`));
    };
    const timer = setTimeout(() => fail('did not get ready'), timeoutMs);
    const ended = (): void => fail('ended');
    child.once('exit', ended);
    child.once('message', ({ url = '', managementUrl = '' }: { url?: string; managementUrl?: string }) => {
      clearTimeout(timer);
      child.removeListener('exit', ended);
      resolve({ url, managementUrl });
    });
  });
}
