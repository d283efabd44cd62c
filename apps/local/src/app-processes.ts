import { type Environment, ownUrl } from '@baton/config';
import { Silence } from '@baton/telemetry';
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { type Home } from './home.js';
import type { PrintedLink } from './printed-link.js';
import { StartError } from './start-error.js';
import { LOOPBACK } from './loopback.js';
import {
  cpuTimeOf,
  forgetProcess,
  recordProcess,
  stopLeftover,
  tailOf,
  waitUntil,
} from './services/service-process.js';
import { StartProgress } from './services/start-progress.js';
import type { RunningProcess, Supervised } from './supervisor.js';

/** Beyond the grace time a process gives its requests or runs. */
const MARGIN_MS = 3000;

/**
 * Of the C library's allocator, as in the Dockerfile. By default it has up to eight arenas for each core. Each of them keeps what it has
 * freed: 20 to 50 MB of an API that sends large answers. An operator may set another number.
 */
export const ALLOCATOR = { MALLOC_ARENA_MAX: '2' };

/** Additional environment variables of the processes. */
export type ChildEnvironment = Record<string, string>;

const idFile = (home: Home, name: string): string => home.file(`${name}.process.json`);

function command(
  home: Home,
  name: string,
  { loopStallMs }: Environment,
  rest: Pick<AppCommand, 'app' | 'environment' | 'readyUrl'>,
): AppCommand {
  return {
    ...rest,
    logFile: home.file('logs', `${name}.log`),
    maxSilenceMs: 2 * loopStallMs,
    pidFile: idFile(home, name),
  };
}

/**
 * The API process.
 * @param link which it gets when it has started the first time. A process that replaces it gets no link: the link works once
 */
export function apiProcess(
  home: Home,
  environment: Environment,
  variables: ChildEnvironment,
  link?: PrintedLink,
): Supervised {
  const { host, port, apiGraceMs } = environment;
  const readyUrl = `${ownUrl(host, port)}/readyz`;
  let firstMessage = link?.message;
  return {
    title: 'The API',
    stopTimeoutMs: apiGraceMs + MARGIN_MS,
    start: async () => {
      const api = await startApp(
        command(home, 'api', environment, { app: 'api', environment: variables, readyUrl }),
      );
      if (firstMessage) api.send(firstMessage);
      firstMessage = undefined;
      return api;
    },
  };
}

/** One of the worker processes; `number` counts from 1. */
export function workerProcess(
  home: Home,
  environment: Environment,
  variables: ChildEnvironment,
  number: number,
  onNotice: (text: string) => void,
): Supervised {
  return {
    title: `Worker ${number}`,
    stopTimeoutMs: environment.workerGraceMs + MARGIN_MS,
    start: () =>
      startApp(
        command(home, `worker-${number}`, environment, {
          app: 'worker',
          // A port that is free now may be taken when the worker listens.
          environment: { ...variables, HOST: LOOPBACK, WORKER_PORT: '0' },
        }),
        ({ type, text }) => {
          // All workers load the same agents and print the same about them. Each has output of its own runs.
          if (type === 'output' || (type === 'notice' && number === 1)) onNotice(String(text));
        },
      ),
  };
}

/** Stops processes of an earlier start that are still finishing their work. */
export async function stopLeftoverApps(home: Home, workers: number): Promise<void> {
  const names = ['api', ...Array.from({ length: workers }, (_, index) => `worker-${index + 1}`)];
  await Promise.all(names.map((name) => stopLeftover(idFile(home, name), 'SIGTERM')));
}

/** Maximum time without progress of a process that is starting. */
const STALL_MS = 120_000;
/** How often to ask a process that starts whether it is ready: a person waits for it. */
const PING_MS = 1_000;

/** One of our own processes, which reads messages. */
interface RunningApp extends RunningProcess {
  send(message: object): void;
}

/** A message from one of our own processes to the one that has started it. */
interface ProcessMessage {
  type?: unknown;
  /** Of `ready`: where it listens. */
  url?: unknown;
  /** For the person at the terminal. */
  text?: unknown;
}

/** One of our own processes to start from the build. */
interface AppCommand {
  app: 'api' | 'worker';
  environment: Record<string, string>;
  /** Answers 200 as soon as the process is ready. Default: `/readyz` at the address that the process reports. */
  readyUrl?: string;
  logFile: string;
  /** Maximum time without an answer to pings, in milliseconds. Then it is killed. */
  maxSilenceMs: number;
  /** Where its process id is noted while it runs. */
  pidFile: string;
}

/**
 * Starts an API or a worker process and waits until it is ready, as long as it gets on. It ends with this process, because the
 * channel between them closes. Throws with the end of its log if it does not get ready.
 * @param onMessage gets the messages of the process for the person at the terminal
 */
async function startApp(
  command: AppCommand,
  onMessage?: (message: ProcessMessage) => void,
): Promise<RunningApp> {
  const main = join(__dirname, '../..', command.app, 'src/main.js');
  if (!existsSync(main)) throw new StartError(`${main} is missing: run \`npm run build\` first.`);
  const log = openSync(command.logFile, 'a', 0o600);
  const child = spawn(process.execPath, [main], {
    env: { ...ALLOCATOR, ...process.env, ...command.environment },
    stdio: ['ignore', log, log, 'ipc'],
    // A separate process group: Ctrl-C reaches only this process, which decides the order.
    detached: true,
  });
  closeSync(log);
  if (child.pid) recordProcess(command.pidFile, child.pid);
  let { readyUrl } = command;
  child.on('message', (message: ProcessMessage | null) => {
    if (message?.type === 'ready') readyUrl ??= `${String(message.url)}/readyz`;
    if (message) onMessage?.(message);
  });
  const running = runningProcess(child, command.pidFile);
  await waitUntilReady(
    running,
    { ...command, readyUrl: () => readyUrl },
    new StartProgress(STALL_MS, () => cpuTimeOf(child.pid ?? 0)),
  );
  killWhenSilent(child, command.maxSilenceMs);
  return { ...running, send: (message) => void child.send(message, () => undefined) };
}

function runningProcess(child: ChildProcess, pidFile: string): RunningProcess {
  const exited = new Promise<string>((resolve) => {
    const gone = (reason: string) => {
      forgetProcess(pidFile, child.pid);
      resolve(reason);
    };
    child.once('error', (error) => gone(error.message));
    child.once('exit', (code, signal) => gone(signal ? `killed by ${signal}` : `exit code ${code ?? '?'}`));
  });
  const stop = async (timeoutMs: number) => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    await exited;
    clearTimeout(timer);
  };
  return { exited, stop, kill: () => void child.kill('SIGKILL') };
}

/**
 * Resolves when the process answers at its ready URL. Rejects with a StartError with the end of its log if it has ended, or makes no
 * progress: it is killed then.
 */
export async function waitUntilReady(
  running: RunningProcess,
  { app, readyUrl, logFile }: Pick<AppCommand, 'app' | 'logFile'> & { readyUrl: () => string | undefined },
  progress: Pick<StartProgress, 'hasStalled'>,
): Promise<void> {
  let ended: string | undefined;
  let isReady = false as boolean;
  void running.exited.then((reason) => (ended = reason));
  await waitUntil(async () => {
    isReady = ended === undefined && (await answersOk(readyUrl()));
    return isReady || ended !== undefined || progress.hasStalled();
  }, Infinity);
  if (isReady) return;
  running.kill();
  const what =
    ended === undefined
      ? `does not get ready: it has done nothing for ${STALL_MS / 1000} s`
      : `ended (${ended})`;
  throw new StartError(`The ${app} process ${what}. The end of ${logFile}:\n${tailOf(logFile)}`);
}

/**
 * Kills a process whose event loop is blocked: it no longer answers pings. Its own watchdog comes first and logs more.
 * This is the fallback.
 */
export function killWhenSilent(child: ChildProcess, maxSilenceMs: number): void {
  const silence = new Silence(PING_MS);
  let answers = 0;
  child.on('message', () => (answers += 1));
  const timer = setInterval(() => {
    if (silence.step(answers) > maxSilenceMs) child.kill('SIGKILL');
    else if (child.connected) child.send({ type: 'ping' }, () => undefined);
  }, PING_MS);
  child.once('exit', () => clearInterval(timer));
}

const answersOk = async (url: string | undefined): Promise<boolean> => {
  if (url === undefined) return false;
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(2000) });
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
};
