import getPort from 'get-port';
import { randomBytes } from 'node:crypto';
import { accessSync, constants, mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { delimiter, join } from 'node:path';
import { inUrl, LOOPBACK } from '../loopback.js';
import { type ServiceProcess, startService, stopLeftover, waitUntilReady } from './service-process.js';

/** A private Redis and the URL to reach it. */
export interface RunningRedis {
  process: ServiceProcess;
  url: string;
}

/** The path of `redis-server` or `valkey-server` on PATH, if there is one. */
export function findRedisBinary(): string | undefined {
  const path = process.env.PATH ?? '';
  const candidates = ['redis-server', 'valkey-server'].flatMap((name) =>
    path.split(delimiter).map((folder) => join(folder, name)),
  );
  return candidates.find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Starts a Redis of our own on a free port of the loopback interface, with its data in `folder`, and waits until it answers. Throws
 * with the end of its log if it does not. `at` restarts it under its former URL, `settings` are further lines of its configuration.
 */
export async function startRedis(
  binary: string,
  folder: string,
  options: { databases?: number; at?: string; settings?: readonly string[] } = {},
): Promise<RunningRedis> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const pidFile = join(folder, 'process.json');
  await stopLeftover(pidFile, 'SIGTERM');

  const before = options.at === undefined ? undefined : new URL(options.at);
  const port = before ? Number(before.port) : await getPort({ host: LOOPBACK });
  const password = before?.password ?? randomBytes(18).toString('base64url');
  const configuration = join(folder, 'redis.conf');
  const logFile = join(folder, 'redis.log');
  // In a file, because every user of the machine can see arguments.
  const settings = [
    `bind ${LOOPBACK}`,
    `port ${port}`,
    `requirepass ${password}`,
    `dir "${folder}"`,
    'appendonly yes',
    'save ""',
    'maxmemory-policy noeviction',
    `databases ${options.databases ?? 16}`,
    ...(options.settings ?? []),
  ];
  writeFileSync(configuration, settings.join('\n'), { mode: 0o600 });

  const process = startService({
    name: 'redis',
    command: binary,
    args: [configuration],
    logFile,
    pidFile,
    stopSignal: 'SIGTERM',
  });
  await waitUntilReady('Redis', process, () => answers(port, password), logFile);
  return { process, url: `redis://:${password}@${inUrl(LOOPBACK)}:${port}` };
}

/** Whether a Redis with this password answers a ping; it refuses while it loads its data. */
function answers(port: number, password: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, LOOPBACK, () => socket.write(`AUTH ${password}\r\nPING\r\n`));
    let text = '';
    socket.setTimeout(1000, () => socket.destroy());
    socket.on('data', (chunk) => {
      text += chunk.toString();
      if (/\+PONG|-\w+/.test(text)) socket.destroy();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(text.includes('+PONG')));
  });
}
