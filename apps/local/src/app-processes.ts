import type { Environment } from '@baton/config';
import { type AppCommand, startApp } from './app-process.js';
import type { Home } from './home.js';
import { freePort } from './services/free-port.js';
import { stopLeftover } from './services/service-process.js';
import type { Supervised } from './supervisor.js';

/** Beyond the grace time a process gives its requests or runs. */
const MARGIN_MS = 3000;

/** What our processes get of the environment on top of what we have ourselves. */
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

/** The API process. */
export function apiProcess(home: Home, environment: Environment, variables: ChildEnvironment): Supervised {
  const { host, port, apiGraceMs } = environment;
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  const readyUrl = `http://${reachable}:${port}/readyz`;
  return {
    title: 'The API',
    stopTimeoutMs: apiGraceMs + MARGIN_MS,
    start: () =>
      startApp(command(home, 'api', environment, { app: 'api', environment: variables, readyUrl })),
  };
}

/** One of the worker processes; `number` counts from 1. */
export function workerProcess(
  home: Home,
  environment: Environment,
  variables: ChildEnvironment,
  number: number,
): Supervised {
  return {
    title: `Worker ${number}`,
    stopTimeoutMs: environment.workerGraceMs + MARGIN_MS,
    start: async () => {
      const port = await freePort();
      return startApp(
        command(home, `worker-${number}`, environment, {
          app: 'worker',
          environment: { ...variables, HOST: '127.0.0.1', WORKER_PORT: String(port) },
          readyUrl: `http://127.0.0.1:${port}/readyz`,
        }),
      );
    },
  };
}

/** Stops processes of an earlier start that are still about their last work. */
export async function stopLeftoverApps(home: Home, workers: number): Promise<void> {
  const names = ['api', ...Array.from({ length: workers }, (_, index) => `worker-${index + 1}`)];
  await Promise.all(names.map((name) => stopLeftover(idFile(home, name), 'SIGTERM')));
}
