import { withoutSecrets } from '@baton/config';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, closeSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Account } from './postgres-files.js';

/** A machine that is busy with other work may need a minute to start Postgres. */
const READY_TIMEOUT_MS = 120_000;

/** How to run a server that belongs to us. */
export interface ServiceCommand {
  name: string;
  command: string;
  args: string[];
  /** Where its output goes. */
  logFile: string;
  /** Where its process id is noted, so that a later start can stop one that outlived its parent. */
  pidFile: string;
  /** Asks the server to shut down. */
  stopSignal: 'SIGINT' | 'SIGTERM';
  /** The user to run as; unset = the present user. */
  account?: Account | undefined;
}

/** A server that runs as our child. */
export interface ServiceProcess {
  readonly pid: number;
  /** Resolves when the process is gone, with the reason in words. Never rejects. */
  readonly exited: Promise<string>;
  /** Resolves when the process is gone; after `timeoutMs` it is killed. */
  stop(timeoutMs?: number): Promise<void>;
  kill(): void;
}

// The server must not outlive this process, even if it is killed: a watcher waits on descriptor 3, whose other end is
// here. A line means that the server is gone already; the end of the pipe means that we are. `exec` gives the server
// the shell's process id. The watcher is a grandchild, for Postgres minds children it did not make.
const WATCHED = '( (read -r gone <&3 || kill -"$1" $$) & ); exec 3<&-; shift; exec "$@"';

/** Starts the server. It is in a group of its own, so that Ctrl-C reaches us alone and we decide the order. */
export function startService(service: ServiceCommand): ServiceProcess {
  const { account } = service;
  const log = openSync(service.logFile, 'a', 0o600);
  if (account) chownSync(service.logFile, account.uid, account.gid);
  const signal = service.stopSignal.slice(3);
  const child = spawn('/bin/sh', ['-c', WATCHED, service.name, signal, service.command, ...service.args], {
    env: withoutSecrets(),
    stdio: ['ignore', log, log, 'pipe'],
    detached: true,
    cwd: '/',
    ...(account ? { uid: account.uid, gid: account.gid } : {}),
  });
  closeSync(log);
  const exited = exitOf(child, service);
  if (child.pid) recordProcess(service.pidFile, child.pid);
  const stop = async (timeoutMs = 20_000) => {
    child.kill(service.stopSignal);
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    await exited;
    clearTimeout(timer);
  };
  return { pid: child.pid ?? 0, exited, stop, kill: () => void child.kill('SIGKILL') };
}

function exitOf(child: ChildProcess, service: ServiceCommand): Promise<string> {
  const lifeline = child.stdio[3] as Writable;
  lifeline.on('error', () => undefined); // The watcher may be gone first.
  return new Promise((resolve) => {
    const gone = (reason: string) => {
      lifeline.end('gone\n');
      forgetProcess(service.pidFile, child.pid);
      resolve(reason);
    };
    child.once('error', (error) => gone(error.message));
    child.once('exit', (code, signal) => gone(signal ? `killed by ${signal}` : `exit code ${code}`));
  });
}

/** Stops the server noted in `pidFile`, if it outlived an earlier start of ours. */
export async function stopLeftover(pidFile: string, stopSignal: NodeJS.Signals): Promise<void> {
  const pid = recordedProcess(pidFile);
  if (pid === undefined) return;
  process.kill(pid, stopSignal);
  const gone = () => recordedProcess(pidFile) === undefined;
  if (await waitUntil(gone, 15_000)) return;
  process.kill(pid, 'SIGKILL');
  await waitUntil(gone, 5000);
}

/** Resolves when `ready` holds; throws, with the end of the log, if the server ends or takes too long. */
export async function waitUntilReady(
  title: string,
  service: ServiceProcess,
  ready: () => boolean | Promise<boolean>,
  logFile: string,
): Promise<void> {
  let ended: string | undefined;
  void service.exited.then((reason) => (ended = reason));
  const settled = await waitUntil(async () => ended !== undefined || (await ready()), READY_TIMEOUT_MS);
  if (ended !== undefined) {
    throw new Error(`${title} ended while starting (${ended}). The end of ${logFile}:\n${tailOf(logFile)}`);
  }
  if (settled) return;
  service.kill();
  throw new Error(`${title} was not ready within ${READY_TIMEOUT_MS / 1000} s; see ${logFile}.`);
}

/** The last five lines of a server's log, for an error message. */
export function tailOf(logFile: string): string {
  try {
    return readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-5).join('\n');
  } catch {
    return '';
  }
}

/** A process as it was when we saw it: its id alone may belong to another process by now. */
interface ProcessRecord {
  pid: number;
  /** When the process started, in the system's own words. */
  started: string;
}

/** When the process with this id started, or undefined if there is none. */
function startOf(pid: number): string | undefined {
  try {
    if (process.platform === 'linux') {
      const fields = statOf(pid);
      return fields[0] === 'Z' ? undefined : fields[19];
    }
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim() || undefined;
  } catch {
    return undefined;
  }
}

/** The fields of a process from the third on. The name in the second may hold spaces and ends with the last parenthesis. */
const statOf = (pid: number): string[] =>
  readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];

/** Clock ticks per second of /proc, on every Linux of today. */
const TICKS_PER_SECOND = 100;

/** CPU time that the process has taken so far, in milliseconds; undefined where the system does not say. */
export function cpuTimeOf(pid: number): number | undefined {
  try {
    const [user, system] = statOf(pid).slice(11, 13).map(Number);
    return user === undefined || system === undefined
      ? undefined
      : ((user + system) * 1000) / TICKS_PER_SECOND;
  } catch {
    return undefined;
  }
}

/** Notes in `file` that the process `pid` is ours. */
export function recordProcess(file: string, pid: number): void {
  const record: ProcessRecord = { pid, started: startOf(pid) ?? '' };
  writeFileSync(file, JSON.stringify(record), { mode: 0o600 });
}

/** Removes the note of the process `pid`. The note of a process that replaced it stays. */
export function forgetProcess(file: string, pid: number | undefined): void {
  if (readRecord(file)?.pid === pid) rmSync(file, { force: true });
}

/** The id of the process noted in `file`, if that very process is still alive. */
export function recordedProcess(file: string): number | undefined {
  const record = readRecord(file);
  return record && startOf(record.pid) === record.started ? record.pid : undefined;
}

function readRecord(file: string): ProcessRecord | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as ProcessRecord;
  } catch {
    return undefined;
  }
}

/**
 * Asks `condition` again and again until it holds. Resolves to false if it does not within `timeoutMs`; rejects
 * as soon as `condition` does.
 */
export async function waitUntil(
  condition: () => boolean | Promise<boolean>,
  timeoutMs: number,
  everyMs = 20,
): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) return false;
    await delay(everyMs);
  }
  return true;
}
