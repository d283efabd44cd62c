import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const DIST = join(__dirname, '../../dist');
/** Options of Node.js by day. At night, and in `npm run chaos`, V8 optimizes as for an operator. */
export const OPTIMIZE_LATER =
  process.env.TEST_PROJECT === 'e2e' ? ['--require', join(__dirname, 'optimize-later.fixture.cjs')] : [];
// For a process that hangs. One that ends is reported at once.
const START_TIMEOUT_MS = 4 * 60_000;
const END_TIMEOUT_MS = 4 * 60_000;
/** A process that gets no CPU for 15 seconds would kill itself. Where the CPU is scarce, this is no fault. */
const STALL_MS = '120000';
/** A run whose worker gets no CPU for three seconds, the default, would get another attempt. Tests that kill workers set CRASH_SETTINGS. */
const LEASE_MS = '60000';

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
  /** Says that it may end by itself. Otherwise such an end fails the test at once. */
  mayEnd(): void;
  /** Sends it a message over the channel between parent and child, as `npm start` does. */
  tell(message: object): Promise<void>;
  /** Resolves when it is gone, for whatever reason, with its exit code. */
  readonly exited: Promise<number | null>;
  /** Everything it has logged. */
  log(): string;
}

/**
 * Starts an API on a free port, or a worker. Resolves when it reports that it is ready.
 * @param dist the build it is from; default: this one
 * @param openFiles its `ulimit -n`
 */
export async function startProcess(
  kind: BatonProcess['kind'],
  env: Record<string, string>,
  timeoutMs = START_TIMEOUT_MS,
  dist = DIST,
  openFiles?: number,
): Promise<BatonProcess> {
  const main = [process.execPath, ...OPTIMIZE_LATER, join(dist, 'apps', kind, 'src/main.js')];
  const limited =
    openFiles === undefined ? main : ['sh', '-c', `ulimit -n ${openFiles}; exec "$0" "$@"`, ...main];
  const child = spawn(limited[0]!, limited.slice(1), {
    env: {
      ...process.env,
      LOG_LEVEL: 'info',
      HOST: '127.0.0.1',
      PORT: '0',
      MANAGEMENT_PORT: '0',
      UNAUTHENTICATED_PER_SECOND: '0',
      // Tests send as fast as they can.
      LIMIT_REQUESTS_PER_SECOND: 'none',
      LIMIT_GUEST_REQUESTS_PER_SECOND: 'none',
      LEASE_MS,
      LOOP_STALL_MS: STALL_MS,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => lines.push(text));
  }
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const { url, managementUrl } = await ready(kind, child, lines, timeoutMs);
  const unasked = new UnaskedExit(kind, child, lines);
  const end = async (signal: NodeJS.Signals): Promise<number | null> => {
    unasked.allow();
    if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    const timeout = new AbortController();
    const late = delay(END_TIMEOUT_MS, undefined, timeout).then(() => {
      throw new Error(
        `The ${kind} process ${child.pid} did not end on ${signal}:\n${lines.join('').slice(-LAST_LOG_CHARS)}`,
      );
    });
    return Promise.race([exited, late]).finally(() => timeout.abort());
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
    signal: (name) => {
      if (!PAUSES.includes(name)) unasked.allow();
      child.kill(name);
    },
    mayEnd: () => unasked.allow(),
    tell: (message) =>
      new Promise((resolve, reject) => child.send(message, (error) => (error ? reject(error) : resolve()))),
    exited,
    log: () => lines.join(''),
  };
}

/** After these signals a process lives on. */
const PAUSES: readonly NodeJS.Signals[] = ['SIGSTOP', 'SIGCONT'];
const LAST_LOG_CHARS = 5000;
/** Its last lines may still be in the pipe. */
const LOG_DELAY_MS = 200;

/** Fails the running test, and each later one, from the unexpected exit of a process until the test ends that process. */
class UnaskedExit {
  private allowed = false;
  private retract: (() => void) | undefined;

  constructor(kind: string, child: ChildProcess, lines: readonly string[]) {
    child.once('exit', (code, signal) => {
      if (!this.allowed)
        setTimeout(
          () => this.report(`The ${kind} process ${child.pid}`, signal ?? `exit code ${code}`, lines),
          LOG_DELAY_MS,
        );
    });
  }

  private report(who: string, how: string, lines: readonly string[]): void {
    if (this.allowed) return;
    const log = lines.join('').slice(-LAST_LOG_CHARS);
    this.retract = failTests(new Error(`${who} ended unexpectedly (${how}). Its log:\n${log}`));
  }

  allow(): void {
    this.allowed = true;
    this.retract?.();
  }
}

/** Fails tests until the returned function is called. Outside of Jest nothing handles them. See jest/environment.js. */
function failTests(error: Error): () => void {
  const fail = (globalThis as { failTests?: (error: Error) => () => void }).failTests;
  return fail?.(error) ?? (() => undefined);
}

/** Messages of a process to its parent. */
interface ProcessMessage {
  type: string;
  url?: string;
  managementUrl?: string;
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
    // Notices for the terminal of `npm start` may come before.
    const onMessage = ({ type, url = '', managementUrl = '' }: ProcessMessage): void => {
      if (type !== 'ready') return;
      clearTimeout(timer);
      child.removeListener('exit', ended).removeListener('message', onMessage);
      resolve({ url, managementUrl });
    };
    child.on('message', onMessage);
  });
}
