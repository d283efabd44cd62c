import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { killWhenSilent, waitUntilReady } from './app-processes.js';
import { cpuTimeOf, forgetProcess, recordedProcess, recordProcess } from './services/service-process.js';
import { StartProgress } from './services/start-progress.js';

/** Answers three pings, and then its event loop stands still. */
const FREEZES = `
  let pings = 0;
  process.on('message', () => {
    process.send({ type: 'pong' });
    if (++pings === 3) setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
  });`;

it('kills a process that no longer answers pings', async () => {
  const child = spawn(process.execPath, ['-e', FREEZES], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
  const answers: unknown[] = [];
  child.on('message', (message) => answers.push(message));
  killWhenSilent(child, 4_000);
  const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
  expect([code, signal]).toEqual([null, 'SIGKILL']);
  expect(answers).toHaveLength(3);
});

it('the end of a process does not wipe out the note of the one that took its place', () => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-test-'));
  const note = join(folder, 'process.json');
  recordProcess(note, process.pid);
  forgetProcess(note, process.ppid);
  expect(recordedProcess(note)).toBe(process.pid);
  forgetProcess(note, process.pid);
  expect(recordedProcess(note)).toBeUndefined();
  rmSync(folder, { recursive: true });
});

describe('waiting for a process that starts', () => {
  const app = { app: 'worker' as const, logFile: '/nowhere' };
  /** A process that never ends by itself. */
  const running = () => {
    let isKilled = false;
    const exited = new Promise<string>(() => undefined);
    return {
      exited,
      stop: () => Promise.resolve(),
      kill: () => (isKilled = true),
      get isKilled() {
        return isKilled;
      },
    };
  };

  it('goes on as long as it takes CPU time, however long that is', () => {
    let [now, cpuMs] = [0, 0];
    const progress = new StartProgress(
      60_000,
      () => cpuMs,
      () => now,
    );
    for (let minutes = 0; minutes < 60; minutes++) {
      now += 59_000;
      cpuMs += 600;
      expect(progress.hasStalled()).toBe(false);
    }
  });

  it('ends when it only waits, or its CPU time is unknown', () => {
    for (const perMinute of [300, undefined]) {
      let [now, cpuMs]: [number, number | undefined] = [0, perMinute];
      const progress = new StartProgress(
        120_000,
        () => cpuMs,
        () => now,
      );
      now = 119_000;
      expect(progress.hasStalled()).toBe(false);
      [now, cpuMs] = [121_000, perMinute && perMinute * 1.5];
      expect(progress.hasStalled()).toBe(true);
    }
  });

  it('reads the CPU time of this process', () => {
    if (process.platform !== 'linux') return;
    const before = cpuTimeOf(process.pid)!;
    const until = performance.now() + 60;
    while (performance.now() < until || cpuTimeOf(process.pid)! <= before);
    expect(cpuTimeOf(process.pid)).toBeGreaterThan(before);
    expect(cpuTimeOf(0)).toBeUndefined();
  });

  it('kills one that makes no progress, and reports it', async () => {
    const child = running();
    const readyUrl = () => 'http://127.0.0.1:1/readyz';
    const asked: boolean[] = [];
    const progress = { hasStalled: () => asked.push(true) === 3 };
    await expect(waitUntilReady(child, { ...app, readyUrl }, progress)).rejects.toThrow(
      'The worker process does not get ready: it has done nothing for 120 s',
    );
    expect([asked.length, child.isKilled]).toEqual([3, true]);
  });

  it('reports how one ended that ends while it starts', async () => {
    const child = { ...running(), exited: Promise.resolve('exit code 3') };
    const progress = { hasStalled: () => false };
    await expect(
      waitUntilReady(child, { ...app, readyUrl: () => 'http://127.0.0.1:1/readyz' }, progress),
    ).rejects.toThrow('The worker process ended (exit code 3)');
  });
});
