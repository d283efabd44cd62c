import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../support/ports.js';
import { type BatonProcess, startProcess } from '../support/baton-process.js';

const LOOK_AGAIN_MS = 250;

/** A process of Baton and its readiness URL. */
export interface Probed {
  process: BatonProcess;
  url: string;
  metricsUrl: string;
}

/** Starts one that may end by itself: the report has it. */
export async function startProbed(kind: BatonProcess['kind'], env: Record<string, string>): Promise<Probed> {
  const port = kind === 'worker' ? await freePort() : undefined;
  // The lease of production: the other tests have a longer one.
  const lease = { LEASE_MS: '3000' };
  const process = await startProcess(kind, { ...lease, ...env, ...(port && { WORKER_PORT: String(port) }) });
  process.mayEnd();
  const ownUrl = `http://127.0.0.1:${port}`;
  return port
    ? { process, url: ownUrl, metricsUrl: ownUrl }
    : { process, url: process.url, metricsUrl: process.managementUrl };
}

export async function untilReady(processes: readonly Probed[]): Promise<void> {
  while (!(await areReady(processes))) await delay(LOOK_AGAIN_MS);
}

export async function areReady(processes: readonly Probed[]): Promise<boolean> {
  const ready = await Promise.all(
    processes.map(({ url }) =>
      fetch(`${url}/readyz`, { signal: AbortSignal.timeout(10_000) }).then(
        ({ status }) => status === 200,
        () => false,
      ),
    ),
  );
  return ready.every(Boolean);
}
